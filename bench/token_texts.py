"""Texts of many kinds, to measure token counters on: prose in ten languages, code, JSON, and noise.

`texts()` is always the same but for the code, which is this package's own source. `talks()` are the
conversations of a corpus, if there is one.
"""

import base64
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

import holdfast

PROSE = {
    "English": (
        "The harbour was quiet when she came down the steps, and the boats lay still as if "
        "somebody had painted them there. An old man was mending a net. He did not look up. "
        "“You are late,” he said, “but so is the tide, and nobody is cross with the tide.” "
        "She laughed, put down her bag and asked whether the ferry to the islands still left "
        "at seven. It did, he told her, unless the wind turned; and the wind, as everyone "
        "here knew, turned whenever it pleased. They waited together, the way people do who "
        "have nothing more important to do."
    ),
    "German": (
        "Als sie die Stufen hinunterkam, lag der Hafen ruhig da, und die Boote bewegten sich "
        "nicht. Ein alter Mann flickte sein Netz, ohne aufzublicken. „Sie kommen spät“, sagte "
        "er, „aber die Flut kommt auch spät, und niemand ist ihr deswegen böse.“ Sie lachte, "
        "stellte ihre Reisetasche ab und fragte, ob die Fähre zu den Inseln noch immer um "
        "sieben Uhr abfahre. Das tue sie, antwortete er, sofern der Wind nicht drehe; und "
        "Windverhältnisse seien hier bekanntlich unberechenbar. Die Fährgesellschaft "
        "übernehme dafür keine Verantwortung."
    ),
    "French": (
        "Le port était calme quand elle descendit les marches, et les bateaux ne bougeaient "
        "pas. Un vieil homme réparait son filet sans lever les yeux. « Vous êtes en retard, "
        "dit-il, mais la marée l’est aussi, et personne ne lui en veut. » Elle rit, posa son "
        "sac et demanda si le bac pour les îles partait toujours à sept heures. Oui, "
        "répondit-il, à moins que le vent ne tourne ; et le vent, tout le monde le savait "
        "ici, tournait quand bon lui semblait."
    ),
    "Spanish": (
        "El puerto estaba tranquilo cuando bajó los escalones, y las barcas no se movían. Un "
        "viejo remendaba su red sin levantar la vista. «Llega usted tarde», dijo, «pero la "
        "marea también, y nadie se enfada con la marea». Ella se rio, dejó la bolsa en el "
        "suelo y preguntó si el transbordador a las islas todavía salía a las siete. Así era, "
        "contestó él, a no ser que cambiara el viento; y el viento, como sabían todos, "
        "cambiaba cuando le daba la gana."
    ),
    "Russian": (
        "Когда она спустилась по ступеням, в гавани было тихо, и лодки стояли неподвижно, "
        "словно нарисованные. Старик чинил сеть и не поднимал глаз. «Вы опоздали, — сказал "
        "он, — но и прилив опаздывает, и никто на него не сердится». Она засмеялась, "
        "поставила сумку и спросила, уходит ли паром на острова по-прежнему в семь часов. "
        "Уходит, ответил он, если не переменится ветер; а ветер здесь, как всем известно, "
        "меняется, когда ему вздумается."
    ),
    "Chinese": (
        "她走下台阶的时候，港口很安静，船停在那里一动不动，好像是有人画上去的。一位老人正在补网，"
        "没有抬头。“你来晚了，”他说，“不过潮水也晚了，谁也不会生潮水的气。”她笑了，放下包，问"
        "去岛上的渡船是不是还在七点开。他说是的，除非风向变了；而这里的人都知道，风想什么时候变就"
        "什么时候变。他们一起等着，就像那些没有更要紧的事情可做的人一样。天色渐渐暗下来，远处的灯"
        "塔亮了。"
    ),
    "Japanese": (
        "彼女が階段を下りてきたとき、港は静かで、船はまるで誰かが描いた絵のように動かなかった。年"
        "老いた男が網を繕っていたが、顔を上げなかった。「遅かったね」と彼は言った。「でも潮も遅れ"
        "ているし、潮に腹を立てる人はいないよ」。彼女は笑って鞄を置き、島へ渡るフェリーはまだ七時"
        "に出るのかと尋ねた。風が変わらなければね、と男は答えた。ここの風は好きなときに変わるのだ"
        "。"
    ),
    "Korean": (
        "그녀가 계단을 내려왔을 때 항구는 조용했고 배들은 누가 그려 놓은 것처럼 "
        "움직이지 않았다. 노인이 그물을 깁고 있었지만 고개를 들지 않았다. "
        "“늦었군요.” 그가 말했다. “하지만 밀물도 늦었고, 밀물에게 화를 내는 사람은 "
        "없지요.” 그녀는 웃으며 가방을 내려놓고 섬으로 가는 배가 아직도 일곱 시에 "
        "떠나느냐고 물었다. 바람만 바뀌지 않으면 그렇다고 그는 대답했다."
    ),
    "Arabic": (
        "كان الميناء هادئا عندما نزلت الدرج، وكانت القوارب ساكنة كأن أحدا رسمها هناك. كان رجل "
        "عجوز يصلح شبكته ولم يرفع رأسه. قال: لقد تأخرت، لكن المد تأخر أيضا، ولا أحد يغضب من "
        "المد. ضحكت ووضعت حقيبتها وسألت إن كانت العبارة إلى الجزر ما زالت تغادر في السابعة. "
        "أجاب نعم، ما لم تتغير الريح، والريح هنا كما يعلم الجميع تتغير متى شاءت."
    ),
    "Hindi": (
        "जब वह सीढ़ियों से नीचे आई तो बंदरगाह शांत था और नावें ऐसे खड़ी थीं जैसे किसी ने "
        "उन्हें बना दिया हो। एक बूढ़ा आदमी अपना जाल ठीक कर रहा था और उसने सिर नहीं उठाया। "
        "उसने कहा, तुम देर से आई हो, पर ज्वार भी देर से आया है, और ज्वार से कोई नाराज़ नहीं "
        "होता। वह हँसी, अपना थैला नीचे रखा और पूछा कि द्वीपों को जाने वाली नाव अब भी सात बजे "
        "जाती है या नहीं।"
    ),
}


def texts() -> dict[str, list[str]]:
    """Texts of some 600 to 2,000 characters, by kind."""
    rnd = random.Random(7)
    found = {kind: [text, text[: len(text) // 2]] for kind, text in PROSE.items()}
    found["Python"] = _chunks(
        "".join(path.read_text(encoding="utf-8") for path in _sources())[:120_000]
    )
    found["JSON"] = [json.dumps(_rows(rnd, 12)) for _ in range(20)]
    found["JSON, indented"] = [json.dumps(_rows(rnd, 8), indent=2) for _ in range(20)]
    found["JSON, tiny values"] = [
        json.dumps([{"id": i, "n": "x", "on": True, "at": None} for i in range(n)])
        for n in range(5, 45, 2)
    ]
    found["log"] = [_log(rnd) for _ in range(20)]
    found["base64"] = [base64.b64encode(rnd.randbytes(900)).decode() for _ in range(10)]
    found["hex"] = [rnd.randbytes(500).hex() for _ in range(10)]
    found["emoji"] = ["".join(rnd.choices("😀🚀🎉🐍✅🔥🇩🇪 👩‍💻 ", k=200)) for _ in range(5)]
    return found


def talks(folder: Path, characters_max: int = 2_000_000) -> Iterator[str]:
    """Chunks of the conversations in a corpus, up to so many characters a file."""
    for path in sorted(folder.glob("conversations/*.jsonl.gz")):
        room = characters_max
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                for chunk in _said(json.loads(line)):
                    room -= len(chunk)
                    yield chunk
                if room < 0:
                    break


def _said(talk: dict) -> Iterator[str]:
    for message in talk["messages"]:
        if isinstance(message.get("content"), str):
            yield from (chunk for chunk in _chunks(message["content"]) if len(chunk) > 200)


def _chunks(text: str, size: int = 2_000) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _sources() -> list[Path]:
    return sorted(Path(holdfast.__file__).parent.glob("*.py"))


def _rows(rnd: random.Random, count: int) -> list[dict]:
    names = ["Ada", "Grace", "Edsger", "Barbara", "Donald", "Leslie"]
    return [
        {
            "id": f"{rnd.getrandbits(64):016x}",
            "name": rnd.choice(names),
            "total": round(rnd.uniform(1, 9_999), 2),
            "created_at": f"2026-0{rnd.randint(1, 9)}-1{rnd.randint(0, 9)}T08:15:00Z",
            "tags": rnd.sample(["new", "paid", "returned", "gift", "export"], 2),
            "is_open": rnd.random() < 0.5,
        }
        for _ in range(count)
    ]


def _log(rnd: random.Random) -> str:
    lines = []
    for _ in range(15):
        address = ".".join(str(rnd.randint(1, 255)) for _ in range(4))
        lines.append(
            f"2026-05-0{rnd.randint(1, 9)} 12:{rnd.randint(10, 59)}:07,{rnd.randint(100, 999)} "
            f"INFO [worker-{rnd.randint(1, 8)}] GET /v1/items/{rnd.getrandbits(40):x} 200 "
            f"{address} {rnd.randint(1, 900)}ms"
        )
    return "\n".join(lines)
