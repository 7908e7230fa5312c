"""Reading, checking and fetching the files of data sets."""
