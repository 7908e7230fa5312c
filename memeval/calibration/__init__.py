"""Tests of judges: probes, labels, corrected accuracies, agreement of judges."""
