"""The board: packages beside each other, as a folder of plain files for any static host."""
