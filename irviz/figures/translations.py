"""The words that irviz writes into figures, in the languages of the course.

Names of TVM's classes and operators are the same in all of them.
"""

from __future__ import annotations

import re
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
    "unchanged": {"zh": "行未改变", "ko": "개 행 변경 없음"},
    "added": {"zh": "行新增", "ko": "개 행 추가"},
    "removed": {"zh": "行删除", "ko": "개 행 삭제"},
    "more rows": {"zh": "行未显示", "ko": "개의 행 생략"},
    "split": {"zh": "拆分", "ko": "분할"},
    "fused": {"zh": "融合", "ko": "융합"},
    "fused and split": {"zh": "融合并拆分", "ko": "융합 후 분할"},
    "reordered": {"zh": "重排", "ko": "순서 변경"},
    "in another order": {"zh": "遍历顺序不同", "ko": "다른 순서로"},
    "in reverse order": {"zh": "遍历顺序相反", "ko": "역순으로"},
    "moved": {"zh": "移动", "ko": "이동"},
    "renamed": {"zh": "重命名", "ko": "이름 변경"},
    "axes": {"zh": "轴", "ko": "축"},
    "bindings": {"zh": "绑定", "ko": "바인딩"},
    "extent": {"zh": "范围", "ko": "범위"},
    "start": {"zh": "起点", "ko": "시작"},
    "step": {"zh": "步长", "ko": "간격"},
    "serial": {"zh": "串行", "ko": "순차"},
    "annotations": {"zh": "注解", "ko": "어노테이션"},
    "inlined": {"zh": "内联", "ko": "인라인"},
    "inlined into {0}": {"zh": "内联到 {0}", "ko": "{0}에 인라인"},
    "shape": {"zh": "形状", "ko": "형태"},
    "dtype": {"zh": "数据类型", "ko": "자료형"},
    "memory layout": {"zh": "内存布局", "ko": "메모리 배치"},
    "storage scope": {"zh": "存储作用域", "ko": "저장 범위"},
    "loop {1} of {0}": {"zh": "{0} 的循环 {1}", "ko": "{0}의 루프 {1}"},
    "statement": {"zh": "语句", "ko": "문장"},
    "attribute": {"zh": "属性", "ko": "속성"},
    "loops {1} of {0}": {"zh": "{0} 的循环 {1}", "ko": "{0}의 루프 {1}"},
    "history of {0}": {"zh": "{0} 的变换历史", "ko": "{0}의 변환 이력"},
}


def say(words: str, language: str, *values: str) -> str:
    """Return words in a language, with values in the places of {0}, {1} …"""
    text = words if language == "en" else _WORDS[words][language]
    return text.format(*values) if values else text


_LOOPS = re.compile(r"(loops?) (\d+(?:, \d+)*) of (\w+)")
_INLINED = "inlined into "


def say_each(text: str, language: str) -> str:
    """Return what the picture of a loop nest says in a language: words between commas, and loops.

    Names, and what irviz has no words for, stay as they are.
    """
    if language == "en":
        return text
    if text.startswith(_INLINED):
        return say("inlined into {0}", language, text.removeprefix(_INLINED))
    text = ", ".join(_WORDS.get(one, {}).get(language, one) for one in text.split(", "))
    return _LOOPS.sub(lambda one: say(f"{one[1]} {{1}} of {{0}}", language, one[3], one[2]), text)


def in_language(words: Words, language: str) -> str:
    """Return the words of a declaration in a language, in English where it has none in this."""
    if isinstance(words, str):
        return words
    return words.get(language) or words.get("en") or next(iter(words.values()), "")
