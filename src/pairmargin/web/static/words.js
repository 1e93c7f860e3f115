// The words of the page, in English and German, and how numbers are written.

const WORDS = {
  en: {
    skip: "Skip to the content", views: "Views", changeName: "{0}: change the name", ask: "Ask", clusters: "Clusters", map: "Map", answers: "Answers", export: "Export",
    question: "Are these two the same?", same: "Same", different: "Different", unsure: "Unsure", undo: "Back",
    who: "Who are you?", whoText: "Your name stands beside your answers. Leave it empty if you are alone.", ok: "Go on",
    nobody: "No name", answered: "answered", inferred: "follow for free", sureness: "sure, on average",
    agreement: "of your last answers were expected", gain: "of the next ten will be news",
    done: "Nothing is left to ask: every answer follows from the ones you gave.",
    saved: "Saved: {0}", undone: "Taken back: {0}", nothing: "There is nothing to take back.", deleted: "Deleted",
    cluster: "Cluster {0}", items: "{0} items", item: "1 item", uncertain: "Uncertain here", more: "Show more",
    name: "Name of the cluster", merge: "Same as …", split: "Split", cancel: "Cancel",
    moved: "Understood. The clusters follow when they have learned it.",
    splitQuestion: "Are these two different kinds?", splitText: "They lie at the two ends of this cluster.",
    splitYes: "Different: split it", splitNo: "Same: leave it", mergeTitle: "Which cluster is it the same as?",
    moveTitle: "Where does it belong?", fewer: "Fewer clusters", moreClusters: "More clusters",
    number: "at most {0} clusters", dragHint: "Drag an item to the shelf where it belongs, or choose it for more.",
    mapText: "Every dot is an item. Drag or use the arrow keys to move; scroll, pinch or press + and − to zoom; Enter tells what lies in the middle.", lines: "Show the answers", reset: "Show all",
    learn: "Learn now", learning: "It learns from all answers.",
    none: "No answers yet. They are listed here, the doubtful ones first.", doubtful: "Perhaps a mistake",
    disagreed: "People disagree", delete: "Delete", by: "{0}, {1}", changeTo: "Change to “{0}”", agreementOf: "Agreement of people (Cohen’s κ): {0}",
    disagreements: "{0} pairs with different answers", exportTitle: "Take it home",
    labels: "Labels", labelsText: "A line for each item: cluster, name and confidence (CSV).",
    pairs: "Pairs", pairsText: "Every answer with who and when (CSV). pairmargin fit and label read it again.",
    model: "Model", modelText: "For new data: pairmargin predict. One file, nothing in it can be executed.",
    report: "Report", reportText: "What came out, on one page that needs nothing else.", download: "Download", noModel: "Not there yet: it is learned in the background.",
    failed: "That did not work: {0}", offline: "The page has lost its server. Start “pairmargin label” again; every saved answer is there.",
    shared: "words in both are marked", differ: "columns that differ are marked", chance: "{0} sure", curve: "sure, after each time of learning",
    summary: "{0}, {1} answers and {2} that follow from them.", itemA: "First item", itemB: "Second item",
  },
  de: {
    skip: "Zum Inhalt", views: "Ansichten", changeName: "{0}: Namen ändern", ask: "Fragen", clusters: "Gruppen", map: "Karte", answers: "Antworten", export: "Export",
    question: "Sind diese beiden gleich?", same: "Gleich", different: "Verschieden", unsure: "Unsicher", undo: "Zurück",
    who: "Wer sind Sie?", whoText: "Ihr Name steht bei Ihren Antworten. Allein darf er leer bleiben.", ok: "Weiter",
    nobody: "Ohne Namen", answered: "beantwortet", inferred: "folgen von selbst", sureness: "sicher im Mittel",
    agreement: "der letzten Antworten waren erwartet", gain: "der nächsten zehn bringen Neues",
    done: "Es bleibt nichts zu fragen: Alles folgt aus Ihren Antworten.",
    saved: "Gespeichert: {0}", undone: "Zurückgenommen: {0}", nothing: "Es gibt nichts zurückzunehmen.", deleted: "Gelöscht",
    cluster: "Gruppe {0}", items: "{0} Stück", item: "1 Stück", uncertain: "Hier unsicher", more: "Mehr zeigen",
    name: "Name der Gruppe", merge: "Gleich wie …", split: "Teilen", cancel: "Abbrechen",
    moved: "Verstanden. Die Gruppen folgen, sobald sie es gelernt haben.",
    splitQuestion: "Sind das zwei verschiedene Arten?", splitText: "Sie liegen an den beiden Enden dieser Gruppe.",
    splitYes: "Verschieden: teilen", splitNo: "Gleich: so lassen", mergeTitle: "Welcher Gruppe ist sie gleich?",
    moveTitle: "Wohin gehört es?", fewer: "Weniger Gruppen", moreClusters: "Mehr Gruppen",
    number: "höchstens {0} Gruppen", dragHint: "Ziehen Sie etwas in die Gruppe, in die es gehört, oder wählen Sie es an.",
    mapText: "Jeder Punkt ist ein Stück. Ziehen oder Pfeiltasten verschieben; Rollen, Spreizen oder + und − vergrößern; Enter sagt, was in der Mitte liegt.", lines: "Antworten zeigen", reset: "Alles zeigen",
    learn: "Jetzt lernen", learning: "Es lernt aus allen Antworten.",
    none: "Noch keine Antworten. Sie stehen dann hier, die zweifelhaften zuerst.", doubtful: "Vielleicht ein Irrtum",
    disagreed: "Uneinigkeit", delete: "Löschen", by: "{0}, {1}", changeTo: "In „{0}“ ändern", agreementOf: "Übereinstimmung (Cohens κ): {0}",
    disagreements: "{0} Paare mit verschiedenen Antworten", exportTitle: "Zum Mitnehmen",
    labels: "Gruppen", labelsText: "Eine Zeile für jedes Stück: Gruppe, Name und Sicherheit (CSV).",
    pairs: "Paare", pairsText: "Jede Antwort mit Person und Zeit (CSV). pairmargin fit und label lesen sie wieder.",
    model: "Modell", modelText: "Für neue Daten: pairmargin predict. Eine Datei, in der nichts ausführbar ist.",
    report: "Bericht", reportText: "Was herauskam, auf einer Seite, die sonst nichts braucht.", download: "Herunterladen", noModel: "Noch nicht da: Es wird im Hintergrund gelernt.",
    failed: "Das ging nicht: {0}", offline: "Die Seite hat ihren Server verloren. Starten Sie „pairmargin label“ neu; jede gespeicherte Antwort ist da.",
    shared: "gemeinsame Wörter sind markiert", differ: "verschiedene Spalten sind markiert", chance: "{0} sicher", curve: "sicher nach jedem Lernen",
    summary: "{0}, {1} Antworten und {2}, die daraus folgen.", itemA: "Erstes Stück", itemB: "Zweites Stück",
  },
};

export const language = (navigator.language || "en").toLowerCase().startsWith("de") ? "de" : "en";

export function word(name, ...values) {
  const text = WORDS[language][name] ?? WORDS.en[name] ?? name;
  return text.replace(/\{(\d)\}/g, (_, k) => String(values[Number(k)]));
}

export const locale = navigator.language || "en"; // how numbers and dates are written, whatever the words

export const number = (value) => value.toLocaleString(locale);
export const percent = (value) => value.toLocaleString(locale, { style: "percent", maximumFractionDigits: 0 });
export const count = (n) => (n === 1 ? word("item") : word("items", number(n)));

// What a cluster is called, also one that nobody has named.
export const nameOf = (each) => each.name || word("cluster", number(each.cluster));
