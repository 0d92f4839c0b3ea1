"""Guess the character set of an old text by its letters.

Latin letters     the first alphabet that has nearly all of them
other scripts     the one whose ten commonest letters are most of them: the sets share their bytes
East Asia         the one whose commonest signs are frequent: the sets share their bytes, and words have many signs
"""

from __future__ import annotations

_ENOUGH = 0.97  # of the letters beyond ASCII that one alphabet must have
_WESTERN = ("Western European", "cp1252")
_ALPHABETS = (
    *((*_WESTERN, letters) for letters in (
        "äöüß", "àâæçéèêëîïôùûüœÿ", "áéíñóúü", "áâãàçéêíóôõú", "àèéìíòóùúïüç", "æøåéòóôäö", "áéíóúýþæöð",
    )),
    *(("Central European", "cp1250", letters) for letters in (
        "ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ",
    )),
    ("Turkish", "cp1254", "çğıöşüâîû\u0307"),
)  # fmt: skip
"""Name, codec and letters beyond ASCII. Western alphabets are tried one by one: together they explain any bytes."""
_SCRIPTS = (
    ("Cyrillic", "cp1251", "оеаинтсрвл"), ("Greek", "cp1253", "αοιετσνηυρ"), ("Hebrew", "cp1255", "יוהלאשרבתמ"),
    ("Arabic", "cp1256", "اليمنورتهب"), ("Thai", "cp874", "านรอกเงมยล"), ("Cyrillic", "koi8-r", "оеаинтсрвл"),
    ("Cyrillic", "cp866", "оеаинтсрвл"),
)  # fmt: skip
_KANA = "のにはをたがでてとしれさいるかもなりらきまこすっくうよあけだ"
_EAST = (
    ("simplified Chinese", "gb18030",
     "的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么心多天而能好都然没日于起还发成事只作当想看文无开手用主行方又如前所本见经头面公同三已老从动两长"),
    ("traditional Chinese", "big5",
     "的一是不了在人有我他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可里後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手用主行方又如前所本見經頭面公同三已老從動兩長"),
    ("Japanese", "cp932", _KANA), ("Japanese", "euc_jp", _KANA),
    ("Korean", "cp949",
     "이다는의에을를은가고하지로한사기도어나리아시대그서해자라인스일있수보전으제만정것조게니안거장마오우구부들원선상여주들습까면요위것없년했세"),
)  # fmt: skip
_FREQUENT, _FEWEST = 0.18, 4  # least share of such signs among those beyond ASCII, and their least number
_COMMON = 0.4  # of the letters beyond ASCII that these ten must be
_SIGNS = "’‘“”„«»–—…¿¡°€·©®™\u00a0•§،؛؟´"
"""Signs of punctuation, which every language may have."""


def guessed(content: bytes) -> tuple[str, str]:
    """Return the name and codec of the character set that explains the letters best; Western European if none does.

    Args:
        content: a text that is not UTF-8.
    """
    if east := _of_the_east(content):
        return east
    for name, codec, letters in _ALPHABETS:
        if _share(content, codec, letters) >= _ENOUGH:
            return name, codec
    shares = {(name, codec): _share(content, codec, letters) for name, codec, letters in _SCRIPTS}
    best = max(shares, key=lambda each: shares[each])
    return best if shares[best] >= _COMMON else _WESTERN


def _of_the_east(content: bytes) -> tuple[str, str] | None:
    """Return the set of East Asia that decodes a text without a fault into frequent signs; None if none does."""
    best, most = None, _FREQUENT
    for name, codec, signs in _EAST:
        try:
            text = content.decode(codec)
        except UnicodeDecodeError:
            continue
        beyond = [sign for sign in text if sign > "\u2e7f" and sign.isalpha()]
        count = sum(sign in signs for sign in beyond)
        others = sum("\x7f" < sign <= "\u2e7f" and sign.isalpha() for sign in text)
        share = count / (len(beyond) + others) if beyond else 0.0
        if count >= _FEWEST and share > most:
            best, most = (name, codec), share
    return best


def _share(content: bytes, codec: str, letters: str) -> float:
    """Return the share of the letters beyond ASCII that are among these, from 0 to 1."""
    text = content.decode(codec, "replace").lower()
    beyond = [sign for sign in text if sign > "\x7f" and sign not in _SIGNS]
    return sum(sign in letters for sign in beyond) / len(beyond) if beyond else 1.0
