// Which texts are German, for a screen reader: those whose words are all German ones of the
// generated corpus.

import { element, set } from "./draw.js";

const GERMAN = new Set(`
ab aber abholen abholt abschließen abschließt alt alte alten alter altes an ankommen ankommt
anrufen anruft Apfel arbeiten arbeitet auf aufmachen aufmacht aufräumen aufräumt aufwecken
aufweckt Auto Autos Baby Babys bald Ball beißen beißt besuchen besucht Bild Bilder Blume Blumen
Boot Boote brauchen braucht Brief Briefe Bruder Brüder Buch Bälle Bücher das dass den denken denkt
der die diese diesen dieser dieses drei Ei Eier ein eine einen einige einladen einlädt endlich er
essen Fahrrad Fahrräder fallen Fenster finden findet Flasche Flaschen Frau Frauen Frosch Frösche
Fuchs fällt Füchse Geschichte Geschichten glauben glaubt glänzen glänzt groß große großen großer
großes gut gute guten guter gutes Haus heute hoffen hofft holen holt Hund Hunde hungrig hungrige
hungrigen hungriger hungriges Hut Häuser hören hört Hüte ihn isst ist jede jeden jeder jedes jetzt
jung junge jungen junger junges Kaffee Kamel Kamele Katze Katzen kaufen kauft kein keine keinen
Kind Kinder klein kleine kleinen kleiner kleines klug kluge klugen kluger kluges Koffer kommen
kommt Kuchen König Könige Königin Königinnen Küche Küchen küssen küsst lachen lacht laden Lampe
Lampen Lehrer leider lesen lieben liebt liest lädt machen macht mag malen malt manchmal Mann Maus
mein meine meinen Milch morgen Mädchen Männer Mäuse mögen müde müden müder müdes nach nachmachen
nachmacht neu neue neuen neuer neues nicht oft Onkel Pferd Pferde plötzlich reparieren repariert
rot rote roten roter rotes rufen ruft räumen räumt sagen sagt schlafen schließen schließt schläft
Schlüssel schmutzig schmutzige schmutzigen schmutziger schmutziges schreiben schreibt Schwein
Schweine schwer schwere schweren schwerer schweres Schwester Schwestern schön schöne schönen
schöner schönes sehen sie sieht sind singen singt stehlen stiehlt stinken stinkt Stuhl Stühle
Suppe Suppen Tante Tanten tanzen tanzt Tasche Taschen Tee Tisch Tische tragen trinken trinkt trägt
Tür Türen Uhr Uhren und uns unser unsere unseren verkaufen verkauft verlieren verliert
verschwinden verschwindet verstehen versteht viele vielleicht Vogel Vögel wackeln wackelt warten
wartet waschen Wasser wecken weckt weil weiß wenn wir wissen Wurst wäscht Würste Zeitung Zeitungen
Zimmer zu zumachen zumacht zwei Äpfel
`.trim().split(/\s+/));

const ALSO_ENGLISH = new Set(
  "alt an Auto Baby Babys Ball Boot den die gut Hut laden mag rot uns".split(" "));
const QUOTED = /(?<=“)[^”]+(?=”)/g;

// Whether all words of a text are German, and one of them is no English one; with German near, only
// "an" alone is left out, which the corpus has in both languages. Marks such as <bos> are no words.
function isGerman(text, near) {
  const words = text.replace(/<\w+>/g, " ").match(/\p{L}+/gu) ?? [];
  return words.every((word) => GERMAN.has(word)) &&
    words.some((word) => (near && word !== "an") || !ALSO_ENGLISH.has(word));
}

// Gives `lang` to what is German: the words of the picture and its buttons, and what the sentences
// around them quote.
export function markGerman({ section, title, said, task }) {
  const words = [...section.querySelectorAll("text, button")];
  const spoken = (node) => node.getAttribute("aria-label") ?? node.textContent;
  const near = words.some((node) => isGerman(spoken(node)));
  for (const node of words) set(node, { lang: isGerman(spoken(node), near) ? "de" : null });
  for (const text of [title, said, task].flatMap((node) => [...node.childNodes])) {
    if (text.nodeType === Node.TEXT_NODE) markQuoted(text, near);
  }
}

function markQuoted(text, near) {
  for (const { 0: words, index } of [...text.data.matchAll(QUOTED)].reverse()) {
    if (!isGerman(words, near)) continue;
    text.splitText(index + words.length);
    const quoted = text.splitText(index), span = element("span", { lang: "de" });
    quoted.replaceWith(span);
    span.append(quoted);
  }
}
