"""How figures are shown: tables, sentences, files, pictures. Nothing here computes a figure."""
