// The ids of each text and the text of these ids, or the error; and every token as figures show it.
// A case is {tokenizer, texts}.

function attempt(compute) {
  try {
    return compute();
  } catch (error) {
    return error.message;
  }
}

function answers(cases) {
  return cases.map(({ tokenizer: json, texts }) => {
    const tokenizer = tokenizerFromJson(json);
    const one = (text) => {
      const ids = tokenizer.encode(text);
      return [ids, tokenizer.decode(ids)];
    };
    return {
      texts: texts.map((text) => attempt(() => one(text))),
      tokens: tokenizer.texts.map((_, id) => tokenizer.token(id)),
    };
  });
}
