package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// worker is an agent that has tools of several extensions.
const worker = `api: 1
id: %[1]s
name: The %[1]s
version: 1.0.0
description: Is the %[1]s.
agent:
  model: default
  instructions: You are the %[1]s.
  uses_tools: [core/*, lab/*, memory/*, tasks/*]
`

// dashboard is a world with something on each page of the board, and the owner's browser.
type dashboard struct {
	*world
	*tab
	t    *testing.T
	base string
	sent map[string]bool // the forms that were sent, by their addresses
}

func newDashboard(t *testing.T) *dashboard {
	t.Helper()
	needChromium(t)
	w := newWorld(t, strangers(), withModel)
	withPage(t, w, `agents: {default: chief}
approve: [lab/*]
backup: {nightly: false} # a person's own would wait for it
links: [{from: chief, to: helper}]
`)
	for _, id := range []string{"chief", "helper"} {
		w.dropIn(id, "", fmt.Sprintf(worker, id))
	}
	w.probe("lab", "tools", "provides: {tools: true}")
	w.asking("jotter", "")
	w.mcp(map[string]any{"fake": mcpServer()})
	w.model.Handle(obedient)
	w.start()
	w.telegramReady()
	w.state(w.control(), "lab", "active")
	w.release()
	d := &dashboard{world: w, t: t, tab: w.tab(w.chromium(), desktopWidth, desktopHeight), sent: map[string]bool{}}
	d.base = d.value(`location.origin`)
	return d
}

// opens opens a page.
func (d *dashboard) opens(path string) {
	d.t.Helper()
	d.run(chromedp.Navigate(d.base+path), chromedp.WaitReady("main", chromedp.ByQuery))
}

// form is the script that finds the form with an address on the page, near a text.
func form(action, near string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("form")].find((f) => f.getAttribute("action") === %q &&
		((f.closest("tr, li, section")?.textContent || "") + [...f.querySelectorAll("input[type=hidden]")].map((i) => i.value).join()).includes(%q))`,
		action, near)
}

// submits fills the form of a page with an address, near a text, sends it as a person does, and
// returns what the page says then. The fields are names and values.
func (d *dashboard) submits(page, action, near string, fields ...string) string {
	d.t.Helper()
	d.opens(page)
	d.is("the form "+action+" near "+near, form(action, near))
	values := map[string]string{}
	for i := 0; i+1 < len(fields); i += 2 {
		values[fields[i]] = fields[i+1]
	}
	given, err := json.Marshal(values)
	if err != nil {
		d.t.Fatal(err)
	}
	if problem := d.value(fmt.Sprintf(`(() => {
		const f = %s, given = %s;
		for (let e = f; e; e = e.parentElement) if (e.tagName === "DETAILS") e.querySelector("summary").click();
		for (const [name, value] of Object.entries(given)) {
			const field = f.elements[name];
			if (field.type === "checkbox") field.checked = value === "yes"; else field.value = value;
		}
		if (!f.checkValidity()) return "the browser refuses the form";
		window.old = true;
		f.querySelector("button").click();
		return "";
	})()`, form(action, near), given)); problem != "" {
		d.t.Fatalf("%s: %s", action, problem)
	}
	d.is("the page after "+action, `!window.old && document.readyState === "complete"`)
	d.sent[action] = true
	if strings.HasSuffix(action, "/look") {
		return "" // a page of its own, which says nothing of a change
	}
	said := d.value(`document.querySelector(".said, .error")?.innerText || ""`)
	if d.value(`Boolean(document.querySelector(".said"))`) != "true" {
		d.t.Fatalf("%s is refused: %s %s", action, said, d.value(`document.querySelector("main").innerText`))
	}
	return said
}

// has waits until a command says something, or doesn't any more.
func (d *dashboard) has(yes bool, text string, args ...string) {
	d.t.Helper()
	d.eventually(fmt.Sprintf("%q %t in %q", text, yes, args), func() bool {
		out, _, _ := d.cli(args...)
		return strings.Contains(out, text) == yes
	})
}

// Each page and each form of the board does what the command line shows, in a real browser.
func TestTheBoardInABrowser(t *testing.T) {
	t.Parallel()
	d := newDashboard(t)
	d.steps(
		step{"people", d.peopleStep}, step{"what is the assistant's", d.belongingsStep},
		step{"questions", d.questionsStep}, step{"extensions", d.extensionsStep},
		step{"deliveries", d.deliveriesStep}, step{"what was said", d.saidStep},
		step{"live", d.liveStep}, step{"layout", d.layoutStep}, step{"keyboard", d.keyboardStep},
		step{"a mistake in config.yaml", d.mistakeStep}, step{"a member", d.memberStep},
	)
	docs, err := os.ReadFile("../../../docs/page.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?m)^\\| `(/board/[a-z/]+)` \\| .*switchboard").FindAllStringSubmatch(string(docs), -1) {
		if !d.sent[found[1]] {
			t.Errorf("the form %s was not tried", found[1])
		}
	}
}

type step struct {
	name string
	do   func()
}

// steps runs subtests one after another, up to the first that fails: each builds on what the
// earlier ones did.
func (d *dashboard) steps(all ...step) {
	d.t.Helper()
	for _, s := range all {
		outer := d.t
		ok := outer.Run(s.name, func(t *testing.T) {
			d.t, d.world.t, d.tab.t = t, t, t
			s.do()
		})
		if d.t, d.world.t, d.tab.t = outer, outer, outer; !ok {
			outer.FailNow()
		}
	}
}

func (d *dashboard) peopleStep() {
	const people = "/board/people"
	writes := func(user int64, name, text string) {
		d.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: user, FirstName: name}, Text: text})
	}
	writes(anna, "Anna", "hello")
	d.told(anna, 1)
	contains(d.t, "the approval", d.submits(people, people+"/approve", fmt.Sprint(anna)), "Anna is connected", "you, the owner")
	const channels = "/board/channels"
	d.told(anna, 2) // that she is connected
	contains(d.t, "the message", d.submits(channels, channels+"/send", "telegram_channel", "text", "from the board"), "delivered")
	d.eventually("it in Telegram", func() bool { return slices.Contains(d.texts(anna), "from the board") })
	writes(clara, "Clara", "hello")
	d.told(clara, 1)
	contains(d.t, "the approval", d.submits(people, people+"/approve", fmt.Sprint(clara), "role", "member"), "Clara is connected")
	person := d.personOf(fmt.Sprint(clara))
	if person.Role != "member" {
		d.t.Errorf("Clara is a %s", person.Role)
	}
	page := people + "/" + person.Id
	contains(d.t, "the role", d.submits(page, people+"/role", person.Id, "role", "guest"), "guest")
	d.has(true, "guest", "people", "list")
	d.submits(page, people+"/role", person.Id, "role", "member")

	writes(boris, "Boris", "hello")
	d.told(boris, 1)
	d.has(true, "Boris", "pairing", "list")
	contains(d.t, "the codes", d.submits(people, people+"/clear", ""), "Deleted 1 code.")
	d.has(false, "Boris", "pairing", "list")
	writes(boris, "Boris", "hello again")
	d.told(boris, 2)
	d.submits(people, people+"/approve", fmt.Sprint(boris), "role", "guest")
	guest := d.personOf(fmt.Sprint(boris))
	contains(d.t, "the revocation", d.submits(people+"/"+guest.Id, people+"/revoke", guest.Id), "no longer approved")
	d.has(false, fmt.Sprint(boris), "people", "list")
	writes(boris, "Boris", "and again")
	d.told(boris, 4)
	d.submits(people, people+"/approve", fmt.Sprint(boris), "role", "guest")
	contains(d.t, "the removal", d.submits(people+"/"+d.personOf(fmt.Sprint(boris)).Id, people+"/remove", ""), "is removed")
	d.has(false, fmt.Sprint(boris), "people", "list")

	// Anna's account is a person of its own, until she links it again.
	account := "telegram_channel/" + fmt.Sprint(anna)
	d.submits(people+"/owner", people+"/unlink", account)
	if x := d.personOf(fmt.Sprint(anna)); x.Id == "owner" {
		d.t.Error("the account is still the owner's")
	}
	d.opens("/")
	d.tab.says("/link")
	d.is("a code", `/\/link [A-Z2-9]{8}/.test(document.querySelector("#log").innerText)`)
	code := regexp.MustCompile(`/link [A-Z2-9]{8}`).FindString(d.value(`document.querySelector("#log").innerText`))
	writes(anna, "Anna", code+" yes")
	d.eventually("the owner's account", func() bool { return d.personOf(fmt.Sprint(anna)).Id == "owner" })

	family := telegramtest.Chat{ID: group, Type: telegramtest.Group, Title: "Family"}
	d.telegram.Inject(telegramtest.Incoming{
		Chat: family, From: telegramtest.User{ID: anna, FirstName: "Anna"}, Text: "@" + d.telegram.Bot().Username + " hello",
	})
	d.has(true, "Family", "groups", "list")
	contains(d.t, "the group", d.submits(people, people+"/household", "Family"), "household group now")
	contains(d.t, "the group", d.submits(people, people+"/household", "Family"), "uses only what is said in it")
}

func (d *dashboard) belongingsStep() {
	const schedules, memory, tasks = "/board/schedules", "/board/memory", "/board/tasks"
	d.submits(schedules, schedules+"/add", "", "text", "water the plants", "every", "1.5")
	d.has(true, "water the plants", "schedules", "list")
	d.submits(schedules, schedules+"/edit", "water the plants", "text", "water the cactus", "every", "7200")
	d.has(true, "water the cactus", "schedules", "list")
	d.opens(schedules)
	d.is("it in the week", `document.querySelector(".week").innerText.includes("water the cactus")`)
	d.submits(schedules, schedules+"/pause", "water the cactus")
	d.has(true, "paused", "schedules", "list")
	d.submits(schedules, schedules+"/resume", "water the cactus")
	d.has(false, "paused", "schedules", "list")
	d.submits(schedules, schedules+"/cancel", "water the cactus")
	d.has(false, "water the cactus", "schedules", "list")
	d.submits(schedules, schedules+"/add", "", "text", "stretch", "cron", "0 19 * * 2,5")

	d.submits(memory, memory+"/add", "", "text", "The kettle is in the kitchen")
	d.has(true, "kettle", "memory", "list")
	d.submits(memory, memory+"/edit", "kettle", "text", "The kettle is in the garden")
	d.has(true, "in the garden", "memory", "list")
	d.submits(memory, memory+"/add", "", "text", "Clara doesn't eat nuts", "kind", "preference")
	d.opens(memory + "?q=nuts")
	d.is("what was searched", `document.querySelectorAll("tbody tr").length === 1`)
	d.submits(memory, memory+"/forget", "kettle")
	d.has(false, "kettle", "memory", "list")

	d.opens("/")
	d.tab.says("/push name=fence paint the fence")
	d.has(true, "fence", "tasks", "list")
	d.opens(tasks)
	d.is("the task in its tree", `document.querySelector(".tree").innerText.includes("fence")`)
	d.submits(tasks, tasks+"/cancel", "fence")
	d.has(true, "cancelled", "tasks", "list")

	d.opens("/")
	d.tab.says(orderTo("links__send_agent_message", map[string]any{"target": "helper", "message": "how are you?"}))
	d.eventually("the exchange in its tree", func() bool {
		d.opens(tasks + "?all=yes")
		return d.value(`document.querySelectorAll(".tree a[href^='/board/tasks/exchange/']").length`) != "0"
	})
	d.run(chromedp.Click(`a[href^="/board/tasks/exchange/"]`, chromedp.ByQuery))
	d.is("what was said there", `document.querySelector(".transcript")?.innerText.includes("how are you?")`)
}

func (d *dashboard) questionsStep() {
	const questions = "/board/questions"
	open := func() string { return d.value(`document.querySelector("main").innerText`) }
	ask := func(order, question string) {
		d.opens("/")
		d.tab.says(order)
		d.is("the order, sent", fmt.Sprintf(`!document.querySelector("#pending .line") &&
			[...document.querySelectorAll("#log .mine .text")].pop()?.innerText.includes(%q)`, order[:8]))
		d.eventually("the question "+question, func() bool {
			d.opens(questions)
			return strings.Contains(open(), question)
		})
	}
	answered := func(text string) {
		d.opens("/")
		d.is("the answer", fmt.Sprintf(`document.querySelector("#log").innerText.includes(%q)`, text))
	}
	ask(orderTo("lab__slow", map[string]any{"n": 1}), "lab/slow")
	contains(d.t, "the page", open(), "n: 1")
	contains(d.t, "the answer", d.submits(questions, questions+"/answer", "yes"), "is sent")
	answered("the result of slow")
	ask(orderTo("lab__look", map[string]any{}), "lab/look")
	d.submits(questions, questions+"/answer", "always")
	answered("the result of look")
	d.has(true, "lab/look", "approvals", "list")
	d.submits(questions, questions+"/revoke", "lab/look")
	d.has(false, "lab/look", "approvals", "list")
	ask(orderTo("ask_user", map[string]any{"question": "Which day?"}), "Which day?")
	d.submits(questions, questions+"/answer", "Which day?", "answer", "the fifth of May")
	answered(`"answer":"the fifth of May"`)
}

func (d *dashboard) extensionsStep() {
	const extensions = "/board/extensions"
	before := d.extension(d.control(), "lab").Pid
	contains(d.t, "the restart", d.submits(extensions+"/lab", extensions+"/restart", "lab"), "lab is restarted")
	if after := d.state(d.control(), "lab", "active").Pid; after == before {
		d.t.Error("lab was not restarted")
	}
	contains(d.t, "the consent", d.submits(extensions+"/jotter", extensions+"/allow", "jotter", "tools", "yes"), "is allowed")
	d.state(d.control(), "jotter", "active")
	d.opens(extensions + "/kernel")
	d.is("a log", `document.querySelector(".lines li")`)
	d.submits(extensions+"/jotter", extensions+"/refuse", "jotter")
	d.state(d.control(), "jotter", "not_allowed")
	d.installStep()
	d.submits(extensions, extensions+"/server/allow", "fake")
	d.mcpReady("fake")
	d.submits(extensions, extensions+"/server/refuse", "fake")
	d.eventually("the server refused", func() bool { return d.mcpStatus("fake").Consent == "refused" })
}

// installStep installs an extension, updates, disables, enables and removes it.
func (d *dashboard) installStep() {
	const extensions, scribe = "/board/extensions", "/board/extensions/scribe"
	looks := func(page, near string, fields ...string) string {
		d.t.Helper()
		d.submits(page, extensions+"/look", near, fields...)
		return d.value(`document.querySelector("main").innerText`)
	}
	main := func() string { return d.value(`document.querySelector("main").innerText`) }
	const manifest = "provides: {tools: true}\npermissions: {network: [api.example.org]}\n"
	source := d.source("scribe", "tools", "1.0.0", manifest)
	contains(d.t, "the offer", looks(extensions, "", "source", source),
		"Install SCRIBE?", source, "api.example.org", "give tools to agents", "Allow and install")
	hash := d.value(`document.querySelector("main input[name=hash]").value`)
	d.source("scribe", "tools", "1.0.1", manifest)
	for _, q := range []*adminv1.InstallRequest{{Source: source, Hash: hash, Allow: true}, {Source: "source/scribe"}, {}} {
		if _, err := d.control().Install(d.world.ctx(), q); !errors.Is(err, contract.ErrInvalid) {
			d.t.Errorf("%v is answered with %v", q, err)
		}
	}
	d.has(false, "scribe", "extensions", "list")

	contains(d.t, "the offer", looks(extensions, "", "source", source), "1.0.1")
	d.sends(extensions+"/install", "Install without allowing it")
	contains(d.t, "what is not allowed", main(), "scribe 1.0.1 is installed. It doesn't run until you allow it.")
	d.notAllowed("scribe")
	d.submits(scribe, extensions+"/allow", "scribe")
	d.state(d.control(), "scribe", "active")
	contains(d.t, "no update", looks(scribe, "scribe"), "SCRIBE is up to date")
	d.source("scribe", "tools", "1.1.0", strings.Replace(manifest, "network", "publish: [system.user.notify], network", 1))
	contains(d.t, "the update", looks(scribe, "scribe"), "Update SCRIBE?", "1.0.1 is installed", "asks for more")
	d.sends(extensions+"/update", "Allow and update")
	contains(d.t, "the update", main(), "scribe 1.1.0 is installed.")
	d.state(d.control(), "scribe", "active")
	contains(d.t, "the command line", d.must("extensions", "show", "scribe"), "1.1.0", source)

	contains(d.t, "disabled", d.submits(scribe, extensions+"/disable", "scribe"), "scribe is disabled.")
	d.state(d.control(), "scribe", "disabled")
	contains(d.t, "config.yaml", d.text("config.yaml"), "scribe")
	contains(d.t, "enabled", d.submits(extensions, extensions+"/enable", "scribe"), "scribe is enabled and active.")
	contains(d.t, "removed", d.submits(scribe, extensions+"/remove", "scribe", "data", "yes"), "scribe is removed.")
	d.has(false, "scribe", "extensions", "list")
	if _, err := os.Stat(d.file("data", "scribe")); err == nil {
		d.t.Error("the data of a removed extension stays")
	}
}

// sends sends a form of the page that is open, by its button.
func (d *dashboard) sends(action, button string) {
	d.t.Helper()
	d.run(chromedp.Evaluate(fmt.Sprintf(`window.old = true; [...document.querySelectorAll("form button")].find(
		(b) => b.innerText === %q && b.form.getAttribute("action") === %q).click()`, button, action), nil))
	d.is("the page after "+action, `!window.old && document.readyState === "complete"`)
	d.sent[action] = true
}

func (d *dashboard) deliveriesStep() {
	const dead = "/board/deadletters"
	n := len(d.dead())
	d.telegram.Block(anna)
	d.telegram.Say(anna, "are you there?")
	d.eventually("a dead letter", func() bool { return len(d.dead()) > n })
	d.telegram.Unblock(anna)
	contains(d.t, "the letter", d.submits(dead, dead+"/resubmit", "are you there?"), "is queued again")
	d.eventually("that it is delivered", func() bool {
		return strings.Contains(strings.Join(d.texts(anna), "\n"), "are you there?")
	})

	contains(d.t, "the backup", d.submits("/board/backups", "/board/backups/create", ""), "backup")
	files, err := os.ReadDir(d.file("backups"))
	if err != nil || len(files) == 0 {
		d.t.Errorf("there is no backup: %v", err)
	}
}

func (d *dashboard) saidStep() {
	d.opens("/")
	d.tab.says("the giraffe is tall")
	d.is("the answer", `document.querySelector("#log").innerText.includes("Heard: the giraffe")`)
	d.run(chromedp.SendKeys(`header input[name=q]`, "giraffe"+kb.Enter, chromedp.ByQuery))
	d.is("what was found", `document.querySelector(".found mark")?.innerText === "giraffe"`)
	contains(d.t, "the command line", d.must("sessions", "search", "giraffe"), "giraffe")
	d.run(chromedp.Click(".found a", chromedp.ByQuery))
	d.is("the transcript", `document.querySelector(".transcript")?.innerText.includes("the giraffe is tall")`)
	session := d.value(`location.pathname.split("/").pop()`)
	d.run(chromedp.Evaluate(`[...document.querySelectorAll(".transcript a[href^='/trace/']")].pop().click()`, nil))
	d.is("the trace", `document.querySelectorAll(".trace tbody tr").length >= 3`)
	opened := strings.Fields(d.value(`[...document.querySelectorAll(".trace a[href^='/step/']")].map((a) => a.getAttribute("href")).join(" ")`))
	if !slices.ContainsFunc(opened, func(href string) bool { return strings.HasPrefix(href, "/step/s") }) {
		d.t.Errorf("no step is the request to a model: %q", opened)
	}
	for _, href := range opened {
		d.opens(href)
		if d.value(`document.querySelectorAll("main .card").length`) == "0" {
			d.t.Errorf("%s is empty", href)
		}
	}
	d.submits("/board/sessions/"+session, "/board/sessions/delete", session)
	d.eventually("that the session is gone", func() bool {
		_, _, code := d.cli("sessions", "show", session)
		return code != 0
	})
}

// pages are those that an owner may open.
func (d *dashboard) pages() []string {
	d.t.Helper()
	d.opens("/board")
	return append(strings.Fields(d.value(`[...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href")).join(" ")`)),
		"/board/people/owner", "/board/extensions/lab", "/board/extensions/kernel", "/board/tasks?all=yes",
		"/board/schedules?all=yes", "/search?q=hello", "/trace")
}

func (d *dashboard) liveStep() {
	d.opens("/board")
	d.is("the board", `document.querySelector("#live-body table")`)
	d.run(chromedp.Evaluate(`window.same = true`, nil))
	d.telegram.Say(anna, "a zebra came by")
	d.is("the message", `window.same && document.querySelector("#live-body").innerText.includes("a zebra came by")`)
}

// No page is wider than its window or hard to read, on a phone and a desktop, light and dark.
func (d *dashboard) layoutStep() {
	for _, path := range d.pages() {
		d.opens(path)
		d.run(chromedp.Evaluate(`document.querySelectorAll("details").forEach((e) => { e.open = true })`, nil))
		for _, size := range [][2]int64{{phoneWidth, phoneHeight}, {desktopWidth, desktopHeight}} {
			for _, scheme := range []string{"dark", "light"} {
				d.run(chromedp.EmulateViewport(size[0], size[1]), emulation.SetEmulatedMedia().WithFeatures(
					[]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
				if problems := d.value(layoutProblems); problems != "" {
					d.t.Errorf("%s, %d pixels, %s: %s", path, size[0], scheme, problems)
				}
				d.picture(fmt.Sprintf("board%s-%d-%s", path, size[0], scheme))
			}
		}
	}
}

// layoutProblems is what makes a page hard to use: a page that scrolls sideways, a text without
// contrast, a field or a button without a name.
const layoutProblems = `(() => {
	const problems = new Set();
	if (document.documentElement.scrollWidth > innerWidth) problems.add("it scrolls sideways");
	const shown = (e) => e.checkVisibility({visibilityProperty: true, opacityProperty: true});
	const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const over = (color, below) => {
		canvas.fillStyle = below; canvas.fillRect(0, 0, 1, 1);
		canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
		return "rgb(" + [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).join() + ")";
	};
	const ground = (e) => e ? over(getComputedStyle(e).backgroundColor, ground(e.parentElement)) : over("Canvas", "white");
	const light = (color) => color.match(/\d+/g).map((c) => c / 255)
		.map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	const seen = new Set();
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || seen.has(e) || !shown(e) || e.closest("[disabled], svg, .skip")) continue;
		seen.add(e);
		const below = ground(e);
		let opacity = 1;
		for (let p = e; p; p = p.parentElement) opacity *= getComputedStyle(p).opacity;
		canvas.globalAlpha = opacity;
		canvas.fillStyle = below; canvas.globalAlpha = 1; canvas.fillRect(0, 0, 1, 1);
		canvas.globalAlpha = opacity; canvas.fillStyle = getComputedStyle(e).color; canvas.fillRect(0, 0, 1, 1);
		canvas.globalAlpha = 1;
		const text = "rgb(" + [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).join() + ")";
		const [a, b] = [light(text), light(below)].sort((x, y) => y - x);
		const contrast = (a + 0.05) / (b + 0.05);
		if (contrast < 4.5) problems.add("contrast " + contrast.toFixed(1) + " of " + e.tagName + "." + e.className + " '" +
			walk.currentNode.data.trim().slice(0, 30) + "' " + text + " on " + below);
	}
	for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a[href]")) {
		if (!shown(e)) continue;
		const name = e.getAttribute("aria-label") || e.innerText || [...(e.labels || [])].map((l) => l.innerText).join("") || e.title;
		if (!name.trim()) problems.add("no name for " + e.outerHTML.slice(0, 80));
	}
	return [...problems].join("; ");
})()`

// Each control is reached by the Tab key, and shown as reached; a form works without a mouse.
func (d *dashboard) keyboardStep() {
	for _, path := range []string{"/board/people/owner", "/board/schedules", "/board/extensions"} {
		d.opens(path)
		n := len(strings.Fields(d.value(`(() => {
			window.reached = new Set(); window.dim = new Set();
			document.addEventListener("focusin", (e) => {
				window.reached.add(e.target);
				const s = getComputedStyle(e.target);
				if (s.outlineStyle === "none" && s.boxShadow === "none") window.dim.add(e.target.outerHTML.slice(0, 80));
			});
			window.wanted = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
				.filter((e) => e.checkVisibility({visibilityProperty: true}));
			return window.wanted.map(() => "x").join(" ");
		})()`)))
		for range n + 2 {
			d.run(chromedp.KeyEvent(kb.Tab))
		}
		if missed := d.value(`window.wanted.filter((e) => !window.reached.has(e)).map((e) => e.outerHTML.slice(0, 80)).join("\n")`); missed != "" {
			d.t.Errorf("%s: the Tab key does not reach\n%s", path, missed)
		}
		if dim := d.value(`[...window.dim].join("\n")`); dim != "" {
			d.t.Errorf("%s: the focus is not seen on\n%s", path, dim)
		}
	}
	d.opens("/board/memory")
	d.run(chromedp.Focus(".fold summary", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab),
		chromedp.KeyEvent("typed by keyboard"), chromedp.Evaluate(`window.old = true`, nil), chromedp.KeyEvent(kb.Tab),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	d.is("that it is remembered", `!window.old && document.querySelector(".said")`)
	d.has(true, "typed by keyboard", "memory", "list")
}

func (d *dashboard) mistakeStep() {
	before := d.text("config.yaml")
	d.write(before+"\nno_such_key: 1\n", 0o600, "config.yaml")
	d.eventually("the mistake", func() bool {
		d.opens("/board/configuration")
		return strings.Contains(d.value(`document.querySelector(".error")?.innerText`), "no_such_key")
	})
	out, complaints, _ := d.cli("config", "check")
	contains(d.t, "the command line", out+complaints, "no_such_key")
	if got := d.value(`document.querySelector(".lines .bad")?.innerText`); !strings.Contains(got, "no_such_key") {
		d.t.Errorf("the line that is marked is %q", got)
	}
	d.write(before+"\n", 0o600, "config.yaml")
	d.eventually("no mistake", func() bool {
		d.opens("/board/configuration")
		return strings.Contains(d.value(`document.querySelector("main").innerText`), "no mistakes")
	})
}

// A member sees their own pages, and answers what they were asked, not what others were.
func (d *dashboard) memberStep() {
	d.opens("/")
	d.tab.says(orderTo("ask_user", map[string]any{"question": "Where is the owner's treasure?"}))
	d.eventually("the owner's question", func() bool {
		d.opens("/board/questions")
		return strings.Contains(d.value(`document.querySelector("main").innerText`), "treasure")
	})
	question := d.value(`document.querySelector("main form input[name=id]").value`)

	m := &dashboard{world: d.world, t: d.t, sent: map[string]bool{}, base: d.base}
	m.tab = d.world.tab(d.chromium(), phoneWidth, phoneHeight, "--person", "Clara")
	m.tab.says(orderTo("ask_user", map[string]any{"question": "Which cake?"}))
	m.is("the question", `document.querySelectorAll("#log .line").length === 2`)
	m.opens("/board")
	if got := m.value(`document.querySelector("nav").textContent`); strings.Contains(got, "People") || !strings.Contains(got, "Questions") {
		d.t.Errorf("a member is offered %q", got)
	}
	m.opens("/board/questions")
	if got := m.value(`document.querySelector("main").innerText`); !strings.Contains(got, "Which cake?") || strings.Contains(got, "treasure") {
		d.t.Errorf("a member is shown %q", got)
	}
	m.outage(true) // what is refused is an error in the console
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/board/questions/answer", "id=" + question + "&answer=there&form=x", 404},
		{"/board/memory/forget", "id=m1", 404}, {"/board/people/role", "person=owner&role=guest", 403},
		{"/board/extensions/restart", "id=lab", 403}, {"/board/sessions/delete", "id=s1", 403},
	} {
		var got int
		m.run(chromedp.Evaluate(fmt.Sprintf(`fetch(%q, {method: "POST", body: new URLSearchParams(%q)}).then((r) => r.status)`,
			c.path, c.body), &got, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		if got != c.status {
			d.t.Errorf("%s answers a member with %d, want %d", c.path, got, c.status)
		}
	}
	m.outage(false)
	m.submits("/board/questions", "/board/questions/answer", "Which cake?", "answer", "the one with nuts")
	m.opens("/")
	m.is("the answer", `document.querySelector("#log").innerText.includes("the one with nuts\"")`)
	d.opens("/board/questions")
	contains(d.t, "the owner's page", d.value(`document.querySelector("main").innerText`), "treasure")
}
