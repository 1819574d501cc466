"""What people do with a model that talks: questions, forms, calls of tools, sessions."""
import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent / "serve"))

from client import Server  # noqa: E402

QUESTIONS = ["Name three colours of the rainbow.", "Which of them is the warmest?", "Write a short sentence with it."]
PERSON = {"type": "object", "additionalProperties": False, "required": ["name", "age", "languages"], "properties": {
    "name": {"type": "string", "maxLength": 24}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "languages": {"type": "array", "items": {"enum": ["French", "German", "Greek"]}, "minItems": 1, "maxItems": 3}}}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather in a city.", "parameters": {
    "type": "object", "additionalProperties": False, "required": ["city", "unit"],
    "properties": {"city": {"type": "string", "maxLength": 30}, "unit": {"enum": ["celsius", "fahrenheit"]}}}}}


def is_person(value):
    return (set(value) == {"name", "age", "languages"} and len(value["name"]) <= 24 and 0 <= value["age"] <= 150
            and 1 <= len(value["languages"]) <= 3 and set(value["languages"]) <= {"French", "German", "Greek"})


def chats(report, model):
    """A conversation, at once and in sessions, greedily and by chance."""
    ask = ["chat", model, "--quiet", "-n", "40", "--temp", "0"]
    answers = report.run(*ask, text="\n".join(QUESTIONS) + "\n")
    report.text("a conversation", answers)
    session = report.work / "conversation.session"
    parts = [report.run(*ask, "--session", session, text=question + "\n") for question in QUESTIONS]
    report.true("the same, a session each question", f"{session.stat().st_size:,} bytes", "at once", "".join(parts) == answers)
    session.unlink()
    story = ["chat", model, "--quiet", "-n", "40", "-p", "Tell me about the sea."]
    report.text("an answer by chance, seed 1", report.run(*story, "--temp", "0.7", "--top-p", "0.9", "--seed", "1"))


def completions(report, model):
    """A text that goes on, at once, in a session, and by guesses that are verified."""
    go_on = ["run", model, "--quiet", "-n", "40", "-p"]
    prompt = "One, two, three, four,"
    text = report.run(*go_on, prompt)
    report.text("a text goes on", text)
    guessed = report.run(*go_on, prompt, "--speculate", "4")
    report.true("the same by --speculate", f"{len(guessed)} bytes", "without", guessed == text)
    session = report.work / "text.session"
    report.run("run", model, "--quiet", "-n", "4", "-p", prompt, "--session", session)
    report.true("the same from a session", f"{session.stat().st_size:,} bytes", "at once",
                report.run(*go_on, prompt, "--session", session) == text)
    session.unlink()


def serves(report, model):
    """Forms and calls as OpenAI's clients ask for them."""
    with Server(report.fovea, f"small={model}", "--context", "1024") as server:
        def ask(words, **fields):
            body = {"model": "small", "messages": [{"role": "user", "content": words}], "temperature": 0, "max_tokens": 80}
            return server.post("/v1/chat/completions", body | fields)["choices"][0]

        form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
        answer = ask("Maria is 34 years old. She speaks Greek and German. Write this as JSON.", response_format=form)
        report.text("a form", answer["message"]["content"])
        person = json.loads(answer["message"]["content"])
        report.true("its schema", ", ".join(person), "validates", is_person(person))
        answer = ask("What is the weather in Oslo, in celsius?", tools=[WEATHER], tool_choice="required")
        (call,) = answer["message"]["tool_calls"]
        report.text("a call", call["function"]["name"] + " " + call["function"]["arguments"])
        given = json.loads(call["function"]["arguments"])
        right = set(given) == {"city", "unit"} and given["unit"] in ("celsius", "fahrenheit")
        report.true("its arguments", ", ".join(given), "validate", right and answer["finish_reason"] == "tool_calls")
