import { type ComponentChild, render } from "preact";
import { signIn } from "./api";
import { App } from "./app";
import { Failure } from "./parts/states";
import "./style/page.css";

const theme = localStorage.getItem("offbook.theme");
if (theme) document.documentElement.dataset.theme = theme;

const root = document.getElementById("page")!;
const shown = (page: ComponentChild) => {
  render(null, root);
  root.replaceChildren(); // what stood there until the script was read
  render(page, root);
};
/** With the code of the address, where there is one: it goes from there and from the history before it is used. */
function open() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", `${location.pathname}#/now`);
  signIn(code)
    .then(() => shown(<App />))
    .catch((error: Error) =>
      shown(
        <main class="sign-in">
          <h1>Offbook</h1>
          <Failure error={error} />
          <p>
            Run <code>offbook ui</code> in a terminal: it opens this page with a new link.
          </p>
        </main>,
      ),
    );
}
open();
// A link that is pasted into a tab that shows the page already loads nothing anew.
addEventListener("hashchange", () => location.hash.startsWith("#code=") && open());
