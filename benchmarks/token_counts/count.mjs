// Counts the tokens of texts with real tokenizers: JSON strings in, one a line; {cl100k_base, o200k_base, claude} out.
import { createInterface } from 'node:readline';
import { getTokenizer } from '@anthropic-ai/tokenizer';
import { countTokens as cl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { countTokens as o200k } from 'gpt-tokenizer/encoding/o200k_base';

const plain = { allowedSpecial: new Set(), disallowedSpecial: new Set() };
const claude = getTokenizer();

for await (const line of createInterface({ input: process.stdin })) {
  const text = JSON.parse(line);
  const counts = {
    cl100k_base: cl100k(text, plain),
    o200k_base: o200k(text, plain),
    // Claude's vocabulary is of normalized text, and its package normalizes before it counts.
    claude: claude.encode(text.normalize('NFKC'), [], []).length,
  };
  console.log(JSON.stringify(counts));
}
claude.free();
