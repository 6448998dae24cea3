// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import "./style.css";
render(<main>reward-kit</main>, document.getElementById("page")!);
