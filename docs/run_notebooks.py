"""Run the notebooks in examples/notebooks and write what their cells print into them."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"


def main() -> None:
    """Run all notebooks, or those that are named."""
    for file in sorted(FOLDER.glob("*.ipynb")):
        if len(sys.argv) > 1 and file.name not in sys.argv[1:]:
            continue
        notebook = nbformat.read(file, as_version=4)
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": FOLDER}}).execute()
        for cell in notebook.cells:
            cell.metadata.clear()  # the times of execution change in every run
            if cell.cell_type == "code":
                cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
        nbformat.write(notebook, file)
        print(f"ran {file.name}")


if __name__ == "__main__":
    main()
