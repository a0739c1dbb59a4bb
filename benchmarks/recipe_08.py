import sys, time, math, torch, json, itertools
from functools import partial
from transformer_lesson import generation, training, mine
from transformer_lesson.model import transformers
from transformer_lesson.text import batches, grammar
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training import recipes, one_step, TrainConfig
torch.set_num_threads(1)
recipe = recipes.GRAMMAR
def run(steps, bs, lr, seed, warm=50, schedule="linear", smoothing=0.1, betas=(0.9,0.98), own=False):
    corpus = grammar.splits(steps*bs, 300, seed=seed)
    tok = WordTokenizer.train([t for p in corpus.train for t in p[:2]])
    torch.manual_seed(seed)
    kind = mine.MyTransformer if own else transformers.EncoderDecoderTransformer
    model = kind(recipe.model_config(tok)).train()
    lf = partial(training.label_smoothed_loss, smoothing=smoothing, pad_id=tok.pad_id)
    opt = torch.optim.AdamW(model.parameters(), betas=betas, eps=1e-9, weight_decay=0.01, fused=True)
    plan = TrainConfig(steps=steps, learning_rate=lr, schedule=schedule, warmup_steps=warm)
    tb = batches.TranslationBatches(corpus.train, tok, bs, seed=seed)
    t0=time.process_time(); losses=[]
    for n, b in zip(range(1,steps+1), tb):
        for g in opt.param_groups: g["lr"]=training.learning_rate(n, plan, 128)
        losses.append(one_step.training_step(model,b,lf,opt,1.0))
    t=time.process_time()-t0
    model.eval(); out={}
    for name in ("unseen","combinations"):
        ps=getattr(corpus,name)
        w=generation.translate(model,tok,[p.source for p in ps],max_new_tokens=24)
        out[name]=generation.exact_match(w,[p.target for p in ps])
    val=training.validation_loss(model,batches.epoch(corpus.unseen,tok,32))
    print(json.dumps(dict(steps=steps,bs=bs,lr=lr,seed=seed,warm=warm,own=own,schedule=schedule,betas=betas,cpu=round(t,1),tail=round(sum(losses[-20:])/20,3),val=round(val,4),vocab=tok.vocab_size,**out)),flush=True)
if __name__=="__main__":
    for a in sys.argv[1:]:
        run(**eval(f"dict({a})"))
