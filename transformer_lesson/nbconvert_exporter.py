"""nbconvert's exporter `lesson`, where the package is installed with or without its extras.

Short, because nbconvert loads it whenever it lists exporters: only the extra `lessons` has more.
"""

from nbconvert.exporters.base import ExporterDisabledError

try:
    from transformer_lesson.explorables.export import LessonExporter
except ModuleNotFoundError as error:
    raise ExporterDisabledError(
        f"The exporter `lesson` needs {error.name}: install transformer_lesson[lessons]."
    ) from error

__all__ = ["LessonExporter"]
