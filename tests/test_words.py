"""Text in any language: search terms, counting and comparison."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks
from memeval.datasets.lint.words import gold_runs, spaced
from memeval.llm.tokens import count_tokens
from memeval.metrics.answer import METRICS, answer_metrics
from memeval.records import EvalCase, EvalQuestion, MemoryChunk, Session, Turn
from memeval.retrieval.bm25 import Bm25Index
from memeval.retrieval.entities import content_words, entities
from memeval.retrieval.entity_graph import EntityGraph
from memeval.retrieval.rechunking import rechunk
from memeval.systems.cogcanvas.links import content_words as linking_words
from memeval.systems.cogcanvas.quotes import find_nearest
from memeval.systems.cogcanvas.retrieval import plain_words
from memeval.text.shown import natural_order
from memeval.text.words import canonical, script_without_words, search_terms, spread


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Ann's WELL-known 7th_day", ["ann", "s", "well", "known", "7th", "day"]),
        ("Café naïve, Beyoncé’s", ["café", "naïve", "beyoncé", "s"]),
        ("Hà Nội là thủ đô", ["hà", "nội", "là", "thủ", "đô"]),
        ("cafe\u0301", ["café"]),
        ("路由协议", ["路由", "由协", "协议"]),
        ("BGP协议在AS65001", ["bgp", "协议", "议在", "as65001"]),
        ("ＢＧＰ　邻居，猫", ["bgp", "邻居", "猫"]),
        ("2023年5月", ["2023", "年", "5", "月"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("ﾈｯﾄﾜｰｸ", ["ネッ", "ット", "トワ", "ワー", "ーク"]),
        ("서울에서 만나요", ["서울", "울에", "에서", "만나", "나요"]),
        ("हिन्दी में क्या है?", ["हिन्दी", "में", "क्या", "है"]),
        ("ما هو اسم القطة؟", ["ما", "هو", "اسم", "القطة"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("แมวดำ", ["แม", "มว", "วด", "ดำ"[:2], "\u0e33"]),
        ("party 🎉👩‍🚀 ok ❤️", ["party", "ok"]),
        ("a\u200bb", ["a", "b"]),
        ("", []),
    ],
)
def test_search_terms_in_many_scripts(text: str, terms: list[str]) -> None:
    if "แมว" in text:  # NFKC writes one of its vowels as two characters
        bare = canonical(text)
        terms = [bare[place : place + 2] for place in range(len(bare) - 1)]

    assert search_terms(text) == terms


def test_numbers_in_names_are_sorted_by_size() -> None:
    names = ["sh_6k", "sh_32k", "sh_262k", "x", "x1", "x01y", "x1y", "x²"]
    assert sorted(["9" * 5000, *reversed(names), ""], key=natural_order) == ["", "9" * 5000, *names]


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_text_is_split_at_non_alphanumerics(text: str) -> None:
    assert search_terms(text) == re.findall(r"[a-z0-9]+", text.lower())
    assert spread(text) == text


@pytest.mark.parametrize(
    "text", ["“Don’t” — it’s 5° …™ ½ café £3 👍❤️", "¿Qué? «là» naïve", "Straße"]
)
def test_text_in_latin_letters_is_passed_to_scorers_unchanged(text: str) -> None:
    assert spread(text) == canonical(text) == text


def test_only_punctuation_outside_ascii_is_removed_from_other_scripts() -> None:
    assert spread("他说：“3.5元”").split() == ["他", "说", ":", "3.5", "元"]


def question(*gold: str) -> EvalQuestion:
    return EvalQuestion(question_id="q", text="?", category="c", gold=gold)


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        ("路由协议", "答案是路由协议。", "负载均衡"),
        ("三", "三个", "五"),
        ("五月七日", "在五月七日，星期天", "明年冬天"),
        ("東京タワー", "東京タワーです。", "大阪城"),
        ("서울역", "서울역에서", "부산항"),
        ("القطة السوداء", "القطة السوداء؟", "كلب أبيض"),
        ("हिन्दी सिनेमा", "हिन्दी सिनेमा।", "अंग्रेज़ी नाटक"),
        ("Việt Nam", "ở Việt Nam", "Lào"),
        ("été à Orléans", "L’été à Orléans.", "hiver"),
    ],
)
def test_right_answer_scores_and_wrong_answer_does_not_in_each_language(
    gold: str, right: str, wrong: str
) -> None:
    scores = answer_metrics(right, question(gold))
    assert all(score is not None for score in scores.values())
    for name in ("token_f1", "mem0_f1", "bleu1", "keyword_overlap", "keyword_pass", "contains"):
        assert (scores[name] or 0) > 0.2, name
        assert answer_metrics(wrong, question(gold))[name] == 0.0, name

    assert set(answer_metrics(gold, question(gold)).values()) == {1.0}


def test_full_width_letters_and_closing_marks_are_ignored() -> None:
    scores = answer_metrics("ＢＧＰ协议。", question("BGP协议"))
    assert scores["exact_match"] == scores["token_f1"] == scores["contains"] == 1.0


def test_decomposed_accents_equal_composed_ones() -> None:
    assert answer_metrics("cafe\u0301", question("café"))["exact_match"] == 1.0
    assert answer_metrics("cafe", question("café"))["exact_match"] == 0.0


@pytest.mark.parametrize(
    ("gold", "script"),
    [("แมวดำ", "Thai"), ("ແມວດຳ", "Lao"), ("ကြောင်", "Burmese"), ("ឆ្មាខ្មៅ", "Khmer")],
)
def test_word_metrics_are_none_for_scripts_without_word_breaks(gold: str, script: str) -> None:
    assert script_without_words(gold) == script
    scores = answer_metrics(f"{gold} ok", question(gold))
    of_words = [metric.name for metric in METRICS if metric.needs_words]
    assert [name for name, score in scores.items() if score is None] == of_words
    assert len(of_words) == 4
    assert scores["contains"] == scores["keyword_pass"] == 1.0
    assert answer_metrics("dog", question(gold))["keyword_pass"] == 0.0


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        (["我昨天去了北京。", "他喜欢路由协议", "天气很好"], "路由协议是什么？"),
        (["昨日は雨でした", "猫の名前はタマです", "寿司が好き"], "猫の名前は？"),
        (["어제 비가 왔다", "고양이 이름은 나비이다", "초밥을 좋아한다"], "고양이의 이름은?"),
        (["เมื่อวานฝนตก", "แมวของฉันชื่อมะลิ", "ชอบซูชิ"], "แมวชื่ออะไร"),
        (["أمطرت أمس", "اسم القطة لولو", "أحب السوشي"], "ما اسم القطة؟"),
        (["कल बारिश हुई", "बिल्ली का नाम मीना है", "मुझे सुशी पसंद है"], "बिल्ली का नाम क्या है?"),
        (["Il pleut", "L’été passé à Orléans", "J’aime le thé"], "Où as-tu passé l’ÉTÉ ?"),
        (["Trời mưa", "Con mèo tên là Mận", "Tôi thích trà"], "mèo tên gì"),
    ],
)
def test_bm25_finds_the_right_text_in_each_language(texts: list[str], query: str) -> None:
    assert Bm25Index(texts).ranking(query)[0][0] == 1
    assert (
        Bm25Index([plain_words(text) for text in texts], "space").ranking(plain_words(query))[0][0]
        == 1
    )


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        (["安: 我昨天去了北京。", "安: 他喜欢路由协议"], "路由协议是什么？"),
        (["م: أمطرت أمس", "م: اسم القطة لولو"], "ما اسم القطة؟"),
        (["अ: कल बारिश हुई", "अ: बिल्ली का नाम मीना है"], "बिल्ली का नाम क्या है?"),
    ],
)
def test_entities_of_scripts_without_capitals_lead_to_their_chunk(
    texts: list[str], query: str
) -> None:
    graph = EntityGraph(texts)
    asked = entities(query) | content_words(query)
    weights = {key: 1.0 for key in asked if key in graph.names}
    assert graph.ranking(weights)[0][0] == 1


def test_entities_of_english_are_unchanged() -> None:
    assert list(entities("Ann: I met Zoë Müller — at the old café.")) == [
        "ann", "zoë müll", "zoë", "müll", "old café", "old", "café",
    ]  # fmt: skip
    assert list(entities("Ann: it rained naïvely")) == ["ann"]


def chunk(content: str, *turn_ids: str) -> MemoryChunk:
    return MemoryChunk(
        chunk_id="c",
        content=content,
        time=None,
        session_id="s",
        turn_ids=turn_ids,
        speakers=("安",),
    )


@pytest.mark.parametrize(
    ("content", "quote", "found"),
    [
        ("安: 我换了工作。我在北京的一家银行！", "我在 北京的一家银行", "我在北京的一家银行"),
        (
            "安: 今天下雨。我在北京的一家银行上班！明天见",
            "在北京一家银行上班",
            "我在北京的一家银行上班！",
        ),
        ("安: मैं गया। बिल्ली का नाम मीना है।", "बिल्ली, का नाम मीना", "बिल्ली का नाम मीना"),
        ("安: I love the café, really.", "love the CAFÉ", "love the café"),
    ],
)
def test_quotes_are_found_in_each_language(content: str, quote: str, found: str) -> None:
    located = find_nearest(quote, chunk(content, "t1"))
    assert located is not None and located.quote == found
    assert content[located.start :].startswith(found)


def test_linking_words_of_chinese_and_accented_text() -> None:
    shared = linking_words("喜欢路由协议") & linking_words("路由协议很难")
    assert shared == {"路由", "由协", "协议"}
    assert linking_words("the café 2023") == {"café"}


def test_each_chinese_character_is_a_token() -> None:
    assert count_tokens("路由协议，BGP four") == 7
    assert count_tokens("don’t stop") == 4


def test_a_long_chinese_turn_is_cut_and_its_chunks_overlap() -> None:
    turn = Turn(turn_id="t", speaker="安", text="很长的话" * 100, time=None)
    case = EvalCase("c", (Session("s", None, (turn,)),), ())
    parts = chunks(case, GranularityConfig("chunk", size=64, overlap=16))
    assert len(parts) > 5
    assert max(count_tokens(part.content) for part in parts) <= 64

    cut = [part.content for part in rechunk([chunk("一二三四五六七八九十" * 6, "t")], 20, 5)]
    assert len(cut) > 3
    assert all(before[-5:] == after[:5] for before, after in pairwise(cut))


def test_chinese_gold_answer_in_a_prompt_is_detected() -> None:
    (run,) = gold_runs(["路由协议"], "是什么？", 3)
    assert run in spaced("他说答案是路由协议。")
