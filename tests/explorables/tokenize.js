// The ids of each text and the text of these ids; and every token as figures show it. A case is
// {tokenizer, texts}.

function answers(cases) {
  return cases.map(({ tokenizer: json, texts }) => {
    const tokenizer = tokenizerFromJson(json);
    const one = (text) => [tokenizer.encode(text), tokenizer.decode(tokenizer.encode(text))];
    return { texts: texts.map(one), tokens: tokenizer.texts.map((_, id) => tokenizer.token(id)) };
  });
}
