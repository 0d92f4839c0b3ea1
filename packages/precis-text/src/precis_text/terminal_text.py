"""Text for a terminal: control characters are shown, not sent.

A document, a name or a model's text may contain escape sequences, which would change the title, clear the screen or
write the clipboard. Text from elsewhere passes `escape_controls` before it is printed.
"""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def escape_controls(text: str) -> str:
    """Return the text with its control characters as escapes (``\\x1b``); line breaks and tabs stay.

    Examples:
        >>> escape_controls("a title \x1b]0;owned\x07 here")
        'a title \\\\x1b]0;owned\\\\x07 here'
    """
    return _CONTROL.sub(_escape, text.replace("\r\n", "\n"))


def escape_line(text: str) -> str:
    """Return the text as `escape_controls` does, with escapes for line breaks and tabs too: a name, a message."""
    return escape_controls(text).replace("\n", "\\n").replace("\t", "\\t")


def json_for_terminal(line: str) -> str:
    """Return JSON of the same meaning, with escapes for the control characters that JSON allows."""
    return re.sub(r"[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", line)


def _escape(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"
