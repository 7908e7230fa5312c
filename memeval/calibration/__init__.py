"""How far a judge can be trusted: probes, labels, corrected accuracies, agreement of judges."""
