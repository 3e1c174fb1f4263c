"""Dockerfiles as BuildKit reads them: text → instructions → stages and what they need; no file is read."""
