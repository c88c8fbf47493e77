import { render } from "preact";
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
signIn(code)
  .then(() => render(<App />, root))
  .catch((error: Error) =>
    render(
      <main class="sign-in">
        <h1>Offbook</h1>
        <Failure error={error} />
        <p>
          Run <code>offbook ui</code> in a terminal: it opens this page with a new link.
        </p>
      </main>,
      root,
    ),
  );
