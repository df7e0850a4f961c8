// Passkeys: one is made on the profile (data-passkey), and one signs a decision (data-step-up).
// Without this script, or without passkeys, the pages say what works instead: a code from an app.
(() => {
  const able = Boolean(window.PublicKeyCredential && navigator.credentials);

  const ANSWER_MS = 30_000;

  const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

  function asked(options) {
    const read = { ...options, challenge: bytes(options.challenge) };
    if (options.user) read.user = { ...options.user, id: bytes(options.user.id) };
    for (const list of ["allowCredentials", "excludeCredentials"]) {
      if (options[list]) read[list] = options[list].map((one) => ({ ...one, id: bytes(one.id) }));
    }
    return read;
  }

  function answered(credential) {
    const response = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (credential.response[name]) response[name] = text(credential.response[name]);
    }
    return JSON.stringify({
      id: credential.id, rawId: text(credential.rawId), type: credential.type, response,
      clientExtensionResults: {},
    });
  }

  async function ask(address, form, words) {
    const answer = await fetch(address, {
      method: "POST", body: new FormData(form), headers: { Accept: "application/json" }, signal: AbortSignal.timeout(ANSWER_MS),
    }).catch(() => { throw new Error(words.unanswered); });
    if (answer.redirected || !answer.headers.get("Content-Type")?.includes("json")) throw new Error(words.failed);
    const read = await answer.json();
    if (read.error) throw new Error(read.error);
    return read;
  }

  const why = (error, words) => (error.name === "Error" ? error.message : words.failed);

  // A form that is sent once its passkey has answered: `fill` puts the answer into it.
  function withPasskey(form, said, fill) {
    const say = (sentence) => { said.textContent = sentence; said.hidden = !sentence; };
    if (location.origin !== form.dataset.origin) say(form.dataset.elsewhere);
    else if (!able) say(form.dataset.unable);
    else form.hidden = false;

    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      try {
        await fill();
        form.submit();
      } catch (error) {
        say(why(error, form.dataset));
      }
    });
  }

  // Making one.
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    withPasskey(form, form.parentElement.querySelector("[data-passkey-said]"), async () => {
      const { publicKey } = await ask(form.dataset.passkey, form, form.dataset);
      form.elements.answer.value = answered(await navigator.credentials.create({ publicKey: asked(publicKey) }));
      form.elements.password.value = "";
    });
  }

  // Signing in, also as the second step.
  const USED = "passkey-used";

  for (const form of document.querySelectorAll("form[data-sign-in]")) {
    withPasskey(form, form.parentElement.querySelector("[data-sign-in-said]"), async () => {
      const { publicKey, ticket } = await ask(form.dataset.signIn, form, form.dataset);
      form.elements.answer.value = answered(await navigator.credentials.get({ publicKey: asked(publicKey) }));
      form.elements.ticket.value = ticket;
      localStorage.setItem(USED, "yes");
    });
    // On the way to a page, where a passkey was used before, nobody has to press the button.
    const isOnTheWay = "asksAtOnce" in form.dataset && !form.hidden && !document.hidden;
    if (isOnTheWay && localStorage.getItem(USED)) form.requestSubmit();
  }

  // Signing a decision: Approve waits for the passkey, then goes on as it would have.
  const box = (form, name) => form.querySelector(`[name="${name}"]`);

  async function sign(button, step) {
    const form = button.form;
    const say = step.querySelector("[data-step-up-said]");
    say.textContent = say.dataset.waiting;
    try {
      if (!able) throw new Error(step.dataset.unable);
      if (location.origin !== step.dataset.origin) throw new Error(step.dataset.elsewhere);
      const offered = await ask(step.dataset.stepUp, form, step.dataset);
      const signed = await navigator.credentials.get({ publicKey: asked(offered.publicKey) });
      box(form, "ticket").value = offered.ticket;
      box(form, "answer").value = answered(signed);
      button.click();
    } catch (error) {
      say.textContent = why(error, step.dataset);
    } finally {
      // A failed or repeated press begins anew.
      setTimeout(() => { for (const name of ["ticket", "answer"]) box(form, name).value = ""; });
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    const step = button?.form?.querySelector("[data-step-up]");
    if (!step || !button.matches("[data-approve]")) return;
    if (box(button.form, "answer").value || box(button.form, "code")?.value.trim()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    sign(button, step);
  }, true);
})();
