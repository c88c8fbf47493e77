import { type ComponentChild, render } from "preact";
import { signIn } from "./api";
import { App } from "./app";
import { Failure } from "./parts/states";
import "./style/page.css";

const code = new URLSearchParams(location.hash.slice(1)).get("code");
// The code is of no use to anybody any more: it goes from the address and from the history.
if (code) history.replaceState(null, "", `${location.pathname}#/now`);

const theme = localStorage.getItem("offbook.theme");
if (theme) document.documentElement.dataset.theme = theme;

const root = document.getElementById("page")!;
const shown = (page: ComponentChild) => {
  root.replaceChildren(); // what stood there until the script was read
  render(page, root);
};
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
