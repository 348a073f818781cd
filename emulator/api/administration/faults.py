"""``/_emulator/faults``: the active injected faults, shown and replaced."""

from typing import Any

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX
from emulator.faults import FAULTS, build_fault


def build_fault_pages() -> Blueprint:
    """Build the routes."""
    pages = Blueprint("faults", __name__)

    @pages.get(f"{PREFIX}faults")
    def show_faults() -> Any:
        return jsonify(FAULTS.describe())

    @pages.put(f"{PREFIX}faults")
    def set_faults() -> Any:
        asked = request.get_json(force=True, silent=True)
        if not isinstance(asked, dict) or not all(isinstance(members, dict) for members in asked.values()):
            return jsonify(error='Give an object of scopes, such as {"s3": {"error": 0.1, "delay": "200ms"}}.'), 400
        try:
            FAULTS.set({scope: build_fault(scope, members) for scope, members in asked.items()})
        except ValueError as error:
            return jsonify(error=f"{error}."), 400
        return jsonify(FAULTS.describe())

    @pages.delete(f"{PREFIX}faults")
    def clear_faults() -> Any:
        FAULTS.set({})
        return jsonify({})

    return pages
