// Calls of Node's clients, run by clients_programs.py from standard input in a folder that has the packages.
//
//     node --input-type=module - URL "CLIENT TEST"
import assert from 'node:assert/strict';

const [url, test] = process.argv.slice(2);
const prompt = 'turn on the reading lamp', answer = '{"do":"on","device":"reading lamp"}';
const messages = [{ role: 'user', content: prompt }];
const { z } = await import('zod');
const music = z.object({ what: z.enum(['jazz', 'rock']) });
const isMusic = (made) => assert.ok(['jazz', 'rock'].includes(made.what), JSON.stringify(made));

async function openai() {
  const { default: OpenAI } = await import('openai');
  const client = new OpenAI({ baseURL: url + '/v1', apiKey: 'none', maxRetries: 0 });
  const chat = client.chat.completions;
  const body = { model: 'demo', messages, temperature: 0 };
  const what = { enum: ['jazz', 'rock'] };
  const play = { name: 'play', parameters: { type: 'object', properties: { what }, required: ['what'] } };
  return {
    async test_chat() {
      assert.equal((await chat.create(body)).choices[0].message.content, answer);
      const models = [];
      for await (const model of client.models.list()) models.push(model.id);
      assert.deepEqual(models, ['demo', 'bert', 'ranker', 'talking']);
    },
    async test_stream() {
      let text = '';
      for await (const part of await chat.create({ ...body, stream: true })) text += part.choices[0]?.delta?.content ?? '';
      assert.equal(text, answer);
    },
    async test_tools() {
      const tools = [{ type: 'function', function: play }];
      const made = await chat.stream({ ...body, tools, tool_choice: 'required' }).finalChatCompletion();
      isMusic(JSON.parse(made.choices[0].message.tool_calls[0].function.arguments));
      const called = { type: 'function', function: { ...play, parse: JSON.parse, function: () => 'on' } };
      const run = chat.runTools({ ...body, tools: [called], tool_choice: { type: 'function', function: { name: 'play' } } });
      await run.done();
      assert.deepEqual(run.messages.map((message) => message.role).slice(0, 3), ['user', 'assistant', 'tool']);
    },
    async test_form() {
      const { zodResponseFormat } = await import('openai/helpers/zod');
      isMusic((await chat.parse({ ...body, response_format: zodResponseFormat(music, 'music') })).choices[0].message.parsed);
    },
    async test_responses() {
      const asked = { model: 'demo', input: prompt, temperature: 0 };
      assert.equal((await client.responses.create(asked)).output_text, answer);
      assert.equal((await client.responses.stream(asked).finalResponse()).output_text, answer);
    },
    async test_vectors() {
      assert.equal((await client.embeddings.create({ model: 'bert', input: ['a', 'b'] })).data.length, 2);
    },
    async test_errors() {
      await assert.rejects(chat.create({ ...body, model: 'none' }), OpenAI.NotFoundError);
      await assert.rejects(chat.create({ ...body, temperature: 'hot' }), OpenAI.BadRequestError);
    },
  };
}

async function ai() {
  const { generateText, streamText, embedMany, tool, stepCountIs, Output, APICallError } = await import('ai');
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const { createOpenAI } = await import('@ai-sdk/openai');
  const own = createOpenAICompatible({ name: 'fovea', baseURL: url + '/v1', apiKey: 'none', supportsStructuredOutputs: true });
  const responses = createOpenAI({ baseURL: url + '/v1', apiKey: 'none' });
  const asked = { model: own('demo'), prompt, temperature: 0 };
  const play = tool({ description: 'Plays music.', inputSchema: music, execute: async ({ what }) => 'playing ' + what });
  return {
    async test_chat() {
      const made = await generateText(asked);
      assert.deepEqual([made.text, made.finishReason], [answer, 'stop']);
      assert.ok(made.usage.outputTokens > 3);
    },
    async test_stream() {
      let text = '';
      for await (const part of streamText(asked).textStream) text += part;
      assert.equal(text, answer);
    },
    async test_tools() {
      for (const model of [own('demo'), responses('demo')]) {
        const made = await generateText({ ...asked, model, tools: { play }, toolChoice: 'required', stopWhen: stepCountIs(2) });
        const parts = made.steps.map((step) => step.content.map((part) => part.type));
        assert.deepEqual(parts, Array(2).fill(['tool-call', 'tool-result']));
      }
    },
    async test_form() {
      isMusic((await generateText({ ...asked, output: Output.object({ schema: music }) })).output);
    },
    async test_responses() {
      assert.equal((await generateText({ ...asked, model: responses('demo') })).text, answer);
      isMusic((await generateText({ ...asked, model: responses('demo'), output: Output.object({ schema: music }) })).output);
    },
    async test_vectors() {
      const made = await embedMany({ model: own.embeddingModel('bert'), values: ['a', 'b'] });
      assert.equal(made.embeddings.length, 2);
    },
    async test_errors() {
      await assert.rejects(generateText({ ...asked, model: own('none'), maxRetries: 0 }),
        (error) => APICallError.isInstance(error) && error.statusCode === 404);
    },
  };
}

const [client, name] = test.split(' ');
await (await { openai, ai }[client]())[name]();
