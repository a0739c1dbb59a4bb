"""Train translators as the paper has them, and say how good each is and where "auf" looks."""
import sys, torch
from dataclasses import replace
from transformer_lesson import training, generation, record
from transformer_lesson.training.recipes import GRAMMAR
from transformer_lesson.text import grammar, batches
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.model import transformers
from transformer_lesson.interpretability.alignment import alignment_hits
from transformer_lesson.checkpoints import save_checkpoint
torch.set_num_threads(1)
corpus=grammar.splits(50000,500,seed=0)
tok=WordTokenizer.train([p.source for p in corpus.train]+[p.target for p in corpus.train])
def run(seed, steps, tied=False, lr=2e-3):
    recipe=replace(GRAMMAR,sizes={**GRAMMAR.sizes,"bias":False,"norm_position":"post","tie_embeddings":tied},
        training=replace(GRAMMAR.training,steps=steps,learning_rate=lr,precision="float32"))
    torch.manual_seed(seed)
    m=transformers.EncoderDecoderTransformer(recipe.model_config(tok))
    training.train(m,batches.TranslationBatches(corpus.train,tok,32),recipe.training)
    m.eval(); out=[]
    for pairs in (corpus.unseen,corpus.combinations):
        w=generation.translate(m,tok,[p.source for p in pairs],max_new_tokens=24)
        out.append(round(generation.exact_match(w,[p.target for p in pairs]),3))
    hits=alignment_hits(m,tok,corpus.unseen[:200])
    s=torch.tensor([[*tok.encode("the child opens the window ."),tok.eos_id]]); t=torch.tensor([[1,*tok.encode("das Kind macht das Fenster auf .")]])
    looks={}
    with torch.no_grad(), record(m) as seen: m(s,t)
    for l in range(2):
        W=seen[f"decoder.{l}.cross_attention.weights"][0]
        for h in range(8): looks[(l,h)]=(round(W[h,5,2].item(),2), round(W[h,3,2].item(),2), round(hits[l,h].item(),2))
    best=sorted(looks.items(),key=lambda x:-x[1][2])[:4]
    print(seed,steps,"tied" if tied else "own",lr,out,"best heads (auf→opens, macht→opens, hits):",best, "most auf→opens:",max(looks.items(),key=lambda x:x[1][0]),flush=True)
    save_checkpoint(f"/work/story_tools/translator_{seed}_{steps}.safetensors",m,tok)
for a in sys.argv[1:]:
    seed,steps=map(int,a.split(":")); run(seed,steps)
