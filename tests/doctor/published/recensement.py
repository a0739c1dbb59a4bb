# -*- coding: utf-8 -*-
"""Recensement : un encodeur lit les lignes d'un tableau (une personne = une ligne) et retrouve les
cases cachées. Les colonnes sont découpées en classes ; une case vide n'est pas écrite, les lignes
n'ont donc pas toutes la même longueur. Le résumé de la ligne (moyenne) est rendu à chaque case."""
import math, random
import torch
from torch import nn
import torch.nn.functional as F

random.seed(3)
torch.manual_seed(3)

VIDE, DEBUT, FIN, CACHE = 0, 1, 2, 3
COLONNES = {
    "age": ["0-14", "15-24", "25-39", "40-59", "60-74", "75+"],
    "region": ["Nord", "Ouest", "Est", "Sud", "Centre", "Ile", "Outremer"],
    "logement": ["maison", "studio", "appartement", "foyer"],
    "etudes": ["aucune", "brevet", "bac", "licence", "master", "doctorat"],
    "metier": ["agriculture", "ouvrier", "employe", "cadre", "artisan", "retraite", "eleve"],
    "famille": ["seul", "couple", "enfants", "parent seul"],
    "revenu": ["tres bas", "bas", "moyen", "haut", "tres haut"],
    "voiture": ["aucune", "une", "deux"],
}
MOTS = ["<vide>", "<debut>", "<fin>", "<cache>"] + [f"{c}={v}" for c, vs in COLONNES.items() for v in vs]
NUMERO = {mot: i for i, mot in enumerate(MOTS)}
LARGEUR, TETES, INTERNE, PROFONDEUR, LONGUEUR_MAX = 40, 4, 80, 2, 16

def personne():
    rang = random.random()                      # tout dépend un peu du même hasard
    ligne = [DEBUT]
    for colonne, valeurs in COLONNES.items():
        if random.random() < 0.2:
            continue                            # case vide
        place = min(len(valeurs) - 1, max(0, int((rang + random.gauss(0, 0.12)) * len(valeurs))))
        ligne.append(NUMERO[f"{colonne}={valeurs[place]}"])
    return ligne + [FIN]

def lot_de(lignes):
    large = max(len(l) for l in lignes)
    return torch.tensor([l + [VIDE] * (large - len(l)) for l in lignes])

def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * x * (1 + 0.044715 * x * x)))

class Couche(nn.Module):
    def __init__(self):
        super().__init__()
        self.norme_attention, self.norme_interne = nn.LayerNorm(LARGEUR), nn.LayerNorm(LARGEUR)
        self.requete, self.cle = nn.Linear(LARGEUR, LARGEUR), nn.Linear(LARGEUR, LARGEUR)
        self.valeur, self.fusion = nn.Linear(LARGEUR, LARGEUR), nn.Linear(LARGEUR, LARGEUR)
        self.monter, self.descendre = nn.Linear(LARGEUR, INTERNE), nn.Linear(INTERNE, LARGEUR)
        self.oubli = nn.Dropout(0.1)

    def par_tete(self, x):
        lot, longueur, _ = x.shape
        return x.view(lot, longueur, TETES, LARGEUR // TETES).transpose(1, 2)

    def attention(self, x, present):
        q, c, v = self.par_tete(self.requete(x)), self.par_tete(self.cle(x)), self.par_tete(self.valeur(x))
        accord = torch.matmul(q, c.transpose(-2, -1)) / math.sqrt(LARGEUR // TETES)
        accord = accord.masked_fill(~present[:, None, None, :], -1e9)
        poids = self.oubli(torch.softmax(accord, dim=-1))
        return self.fusion(torch.matmul(poids, v).transpose(1, 2).flatten(2))

    def forward(self, x, present):
        x = x + self.oubli(self.attention(self.norme_attention(x), present))
        interne = self.descendre(gelu(self.monter(self.norme_interne(x))))
        return x + self.oubli(interne)

class Recenseur(nn.Module):
    def __init__(self):
        super().__init__()
        self.mots = nn.Embedding(len(MOTS), LARGEUR)
        self.places = nn.Embedding(LONGUEUR_MAX, LARGEUR)
        self.couches = nn.ModuleList([Couche() for _ in range(PROFONDEUR)])
        self.du_resume = nn.Linear(LARGEUR, LARGEUR, bias=False)
        self.norme_finale = nn.LayerNorm(LARGEUR)
        self.biais = nn.Parameter(torch.zeros(len(MOTS)))
        self.oubli = nn.Dropout(0.1)
        for nom, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.05 if nom.startswith(("mots", "places")) else p.size(1) ** -0.5)
            elif nom.endswith("bias"):
                nn.init.zeros_(p)

    def resume(self, x, present):
        poids = present.unsqueeze(-1).to(x.dtype)
        return (x * poids).sum(1, keepdim=True) / poids.sum(1, keepdim=True).clamp(min=1)

    def forward(self, lignes):
        present = lignes != VIDE
        rangs = torch.arange(lignes.size(1))
        x = self.oubli(self.mots(lignes) + self.places(rangs))
        for couche in self.couches:
            x = couche(x, present)
        x = self.norme_finale(x + self.du_resume(self.resume(x, present)))
        return x @ self.mots.weight.T + self.biais

modele = Recenseur()
etapes, chauffe, sommet = 60, 8, 3e-3

def taux(etape):
    if etape < chauffe:
        return sommet * (etape + 1) / chauffe
    return sommet * max(0.0, (etapes - etape) / (etapes - chauffe))

SANS_FREIN = ("bias", "biais", "norme")
freines = [p for n, p in modele.named_parameters() if not any(s in n for s in SANS_FREIN)]
libres = [p for n, p in modele.named_parameters() if any(s in n for s in SANS_FREIN)]
optimiseur = torch.optim.AdamW([{"params": freines, "weight_decay": 0.05},
                                {"params": libres, "weight_decay": 0.0}], lr=taux(0))

def cacher(lignes):
    """15 % des cases sont à deviner : 80 % cachées, 10 % remplacées au hasard, 10 % laissées."""
    a_deviner = (torch.rand(lignes.shape) < 0.15) & (lignes > CACHE)
    sort = torch.rand(lignes.shape)
    hasard = torch.randint(CACHE + 1, len(MOTS), lignes.shape)
    vues = torch.where(a_deviner & (sort < 0.8), CACHE, lignes)
    vues = torch.where(a_deviner & (sort >= 0.9), hasard, vues)
    return vues, a_deviner

def perte(lignes):
    vues, a_deviner = cacher(lignes)
    par_case = F.cross_entropy(modele(vues).transpose(1, 2), lignes, reduction="none")
    return (par_case * a_deviner).sum() / a_deviner.sum().clamp(min=1)

def un_pas(lignes):
    modele.train()
    optimiseur.zero_grad()
    valeur = perte(lignes)
    valeur.backward()
    nn.utils.clip_grad_norm_(modele.parameters(), 1.0)
    optimiseur.step()
    return valeur.item()

@torch.no_grad()
def mesurer(lots):
    """chaque case est cachée à son tour ; perte moyenne par case"""
    avant = modele.training
    modele.eval()
    somme, cases = 0.0, 0
    for lot in lots:
        lignes = lot if torch.is_tensor(lot) else lot[0]
        for j in range(lignes.size(1)):
            vues = lignes.clone()
            vues[:, j] = CACHE
            par_ligne = F.cross_entropy(modele(vues)[:, j], lignes[:, j], reduction="none")
            utile = lignes[:, j] > CACHE
            somme += par_ligne[utile].sum().item()
            cases += utile.sum().item()
    modele.train(avant)
    return somme / cases

if __name__ == "__main__":
    for etape in range(etapes):
        for groupe in optimiseur.param_groups:
            groupe["lr"] = taux(etape)
        valeur = un_pas(lot_de([personne() for _ in range(48)]))
        if etape % 20 == 19:
            print(etape + 1, round(valeur, 3), round(mesurer([lot_de([personne() for _ in range(64)])]), 3))

# ce que je vous remets
model, batch, kind = modele, lot_de([personne() for _ in range(8)]), "encoder"
pad_id, start_id, eos_id, max_length, padding_side, tied = VIDE, DEBUT, FIN, LONGUEUR_MAX, "right", True
loss, train_step, optimizer, evaluate, schedule, steps = perte, un_pas, optimiseur, mesurer, taux, etapes
