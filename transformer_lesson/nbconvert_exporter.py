"""nbconvert's exporter `lesson`, whether or not the package's extras are installed.

Short, because nbconvert loads it whenever it lists exporters; the work is done elsewhere.
"""

from nbconvert.exporters.base import ExporterDisabledError

try:
    from transformer_lesson.explorables.export import LessonExporter
except ModuleNotFoundError as error:
    raise ExporterDisabledError(
        f"The exporter `lesson` needs {error.name}: install transformer_lesson[lessons]."
    ) from error

__all__ = ["LessonExporter"]
