"""The board: packages side by side, as a folder of plain files for any static host."""
