"""Pages of the reference and blocks of other pages, drawn from the code by `make_docs`."""
