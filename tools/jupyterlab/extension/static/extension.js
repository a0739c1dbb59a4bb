// What the course adds to JupyterLab and Notebook 7, in the form in which they load an extension
// (a container of module federation, written by hand: nothing is compiled).

(() => {
  let shared;

  // Returns a module that JupyterLab has loaded, its tokens and classes.
  async function ofJupyterLab(name) {
    const [version] = Object.values(shared[name]);
    return (await version.get())();
  }

  // A picture's text alternative, which JupyterLab leaves out: the one in the output's metadata,
  // or, as in VS Code, the output's text.
  function describePictures(rendermime) {
    const standard = rendermime.getFactory("image/png");
    const createRenderer = (options) => {
      const picture = standard.createRenderer(options), render = picture.render.bind(picture);
      picture.render = async (output) => {
        await render(output);
        const { alt } = output.metadata[options.mimeType] ?? {};
        picture.node.querySelector("img").alt = String(alt ?? output.data["text/plain"] ?? "");
      };
      return picture;
    };
    rendermime.addFactory({ ...standard, createRenderer }, rendermime.getRank?.("image/png"));
  }

  // JupyterLab goes to the last cell when it runs all of them (its issue 16402).
  function stayAtCell(actions, name) {
    const run = actions[name];
    actions[name] = (notebook, ...others) => {
      const { activeCellIndex } = notebook;
      notebook.scrollToItem = () => Promise.resolve();
      const done = run(notebook, ...others);
      delete notebook.scrollToItem; // the method of its class stands again
      notebook.activeCellIndex = activeCellIndex;
      return done;
    };
  }

  async function load() {
    const { IRenderMimeRegistry } = await ofJupyterLab("@jupyterlab/rendermime");
    const { NotebookActions } = await ofJupyterLab("@jupyterlab/notebook");
    return {
      id: "transformer-lesson:plugin",
      autoStart: true,
      requires: [IRenderMimeRegistry],
      activate: (app, rendermime) => {
        describePictures(rendermime);
        for (const name of ["runAll", "runAllBelow"]) stayAtCell(NotebookActions, name);
      },
    };
  }

  (globalThis._JUPYTERLAB ??= {})["transformer-lesson"] = {
    init: (scope) => { shared = scope; },
    get: async () => {
      const plugin = await load();
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
