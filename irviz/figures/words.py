"""The words that irviz writes into figures, in the languages of the course.

Names of TVM's classes and operators are the same in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from irviz.figures.declaration import Words

_WORDS: Mapping[str, Mapping[str, str]] = {
    "function": {"zh": "函数", "ko": "함수"},
    "parameters": {"zh": "参数", "ko": "매개변수"},
    "dataflow block": {"zh": "数据流块", "ko": "데이터플로우 블록"},
    "binding": {"zh": "绑定", "ko": "바인딩"},
    "variable": {"zh": "变量", "ko": "변수"},
    "value": {"zh": "值", "ko": "값"},
    "result": {"zh": "返回值", "ko": "반환값"},
    "writes": {"zh": "写入", "ko": "쓰기"},
    "return": {"zh": "返回", "ko": "반환"},
    "NumPy with loops": {"zh": "使用循环的 NumPy", "ko": "루프로 쓴 NumPy"},
    "before": {"zh": "变换前", "ko": "변환 전"},
    "after": {"zh": "变换后", "ko": "변환 후"},
    "computational graph of {0}": {"zh": "{0} 的计算图", "ko": "{0}의 계산 그래프"},
    "buffers of {0}, and the calls that write them": {
        "zh": "{0} 的缓冲区，以及写入它们的调用",
        "ko": "{0}의 버퍼와 그것에 쓰는 호출",
    },
    "{0} after each transform": {"zh": "每次变换后的 {0}", "ko": "각 변환 후의 {0}"},
    "parts of {0}": {"zh": "{0} 的组成部分", "ko": "{0}의 구성 요소"},
    "{0} in TVMScript and in NumPy": {
        "zh": "{0} 的 TVMScript 与 NumPy",
        "ko": "TVMScript와 NumPy로 쓴 {0}",
    },
    "loop nest of {0}": {"zh": "{0} 的循环嵌套", "ko": "{0}의 루프 중첩"},
    "history of {0}": {"zh": "{0} 的变换历史", "ko": "{0}의 변환 이력"},
}


def say(words: str, language: str, *values: str) -> str:
    """Return words in a language, with values in the places of {0}, {1} …"""
    text = words if language == "en" else _WORDS[words][language]
    return text.format(*values) if values else text


def in_language(words: Words, language: str) -> str:
    """Return the words of a declaration in a language, in English where it has none in this."""
    if isinstance(words, str):
        return words
    return words.get(language) or words.get("en") or next(iter(words.values()), "")
