"""What the soak test runs in the kernel (Python) and in the pages (JavaScript)."""

ALL_RAN = """() => [...window.jupyterapp.shell.currentWidget.content.model.cells].every(
    cell => cell.type !== 'code' || cell.executionCount)"""
IN_KERNEL = """
import gc
import psutil
from IPython.display import JSON
from ipywidgets.widgets.widget import _instances
from transformer_lesson.explorables.in_page import PageExplorable

def soak_explorables(ids):
    return JSON([i for i in ids if isinstance(_instances.get(i), PageExplorable)])

def soak_saved(model_id, path):
    _instances[model_id].save_html(path)
    return JSON([])

def soak_values(model_id):
    explorable = _instances[model_id]
    return JSON(explorable.values)

def soak_memory():
    gc.collect()
    return JSON([psutil.Process().memory_info().rss])
"""
WATCH = """async code => {
    const {kernel} = window.jupyterapp.shell.currentWidget.sessionContext.session;
    window.soak = {problems: []};
    window.soak.ask = async expression => {
        const asked = kernel.requestExecute({
            code: '', silent: true, store_history: false, user_expressions: {answer: expression}});
        const {answer} = (await asked.done).content.user_expressions;
        if (answer.status !== 'ok') throw new Error(`${answer.ename}: ${answer.evalue}`);
        return answer.data['application/json'];
    };
    await kernel.requestExecute({code, silent: true, store_history: false}).done;
    kernel.iopubMessage.connect((_, {header, content}) => {
        if (header.msg_type === 'error') window.soak.problems.push(content.traceback.join(' '));
        if (header.msg_type === 'stream') window.soak.problems.push(content.text);
    });
}"""
ASK = "expression => window.soak.ask(expression)"
FIND = """async () => {
    const found = [];
    for (const cell of window.jupyterapp.shell.currentWidget.content.widgets) {
        const views = cell.model.sharedModel?.outputs?.map(
            output => output.data?.['application/vnd.jupyter.widget-view+json']?.model_id) ?? [];
        const ids = views.filter(id => id);
        found.push(...await window.soak.ask(`soak_explorables(${JSON.stringify(ids)})`));
    }
    return found;
}"""
VALUES = "number => [...document.querySelectorAll('div.explorable')][number].model.values"
SET = """([number, values]) => {
    const {model} = [...document.querySelectorAll('div.explorable')][number];
    for (const [name, value] of Object.entries(values)) model.set(name, value);
}"""
SHOWN = """async root => {
    const {shadowRoot} = [...root.querySelectorAll('div')].find(node => node.shadowRoot);
    shadowRoot.activeElement?.blur(); // what only the focus shows is no state
    for (let i = 0; i < 2; i++) await new Promise(done => requestAnimationFrame(done));
    const all = selector => [...shadowRoot.querySelectorAll(selector)];
    return [
        shadowRoot.querySelector('h3').textContent,
        shadowRoot.querySelector('.said').textContent,
        ...all('svg [tabindex]').map(node => node.getAttribute('aria-label')),
        ...all('svg text').map(node => node.textContent),
    ];
}"""
