package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/extensions/anthropic/anthropictest"
	"github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
)

// newcomer is a home that nothing is set up in, beside servers for a model and for
// Telegram.
func newcomer(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, strangers())
	delete(w.env, "TELEGRAM_BOT_TOKEN")
	w.model = openaitest.New(t)
	w.model.RequireKey(openaiKey)
	w.env["OPENAI_BASE_URL"] = w.model.BaseURL()
	return w
}

// dialog is a command on a terminal. It counts what a person types; a pasted text is one.
type dialog struct {
	w     *world
	tty   *os.File
	cmd   *exec.Cmd
	out   *buffer
	read  int // of out, by hears
	keys  int
	lines int
}

func (w *world) dialog(args ...string) *dialog {
	w.t.Helper()
	d := &dialog{w: w, cmd: w.command(args...), out: &buffer{}}
	d.cmd.Env = append(d.cmd.Env, "TERM=xterm", "NO_COLOR=1")
	tty, err := pty.StartWithSize(d.cmd, &pty.Winsize{Rows: 40, Cols: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	d.tty = tty
	w.t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		_ = tty.Close()
		if w.t.Failed() {
			w.t.Logf("the terminal showed:\n%s", d.out)
		}
	})
	go func() { _, _ = io.Copy(d.out, tty) }()
	return d
}

// hears waits for a text after the last one that was heard.
func (d *dialog) hears(want string) {
	d.w.t.Helper()
	d.w.eventually(fmt.Sprintf("%q on the terminal", want), func() bool {
		i := strings.Index(d.out.String()[d.read:], want)
		if i >= 0 {
			d.read += i + len(want)
		}
		return i >= 0
	})
}

func (d *dialog) put(text string, keys int) {
	d.w.t.Helper()
	d.keys += keys
	d.lines++
	if _, err := d.tty.WriteString(text + "\r"); err != nil {
		d.w.t.Fatal(err)
	}
}

// types types a line, pastes pastes one; both end with Enter.
func (d *dialog) types(text string)  { d.w.t.Helper(); d.put(text, len(text)+1) }
func (d *dialog) pastes(text string) { d.w.t.Helper(); d.put(text, 2) }

// hidden waits until the terminal shows nothing of what is typed.
func (d *dialog) hidden() {
	d.w.t.Helper()
	d.w.eventually("a terminal that hides what is typed", func() bool { return !d.echoes() })
}

func (d *dialog) echoes() bool {
	d.w.t.Helper()
	state, err := unix.IoctlGetTermios(int(d.tty.Fd()), readTermios)
	if err != nil {
		d.w.t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// ends waits for the end of the command.
func (d *dialog) ends(code int) {
	d.w.t.Helper()
	ended := make(chan struct{})
	go func() {
		_ = d.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		d.w.t.Fatal("the command does not end")
	}
	if got := d.cmd.ProcessState.ExitCode(); got != code {
		d.w.t.Errorf("the exit status is %d, want %d", got, code)
	}
}

// From nothing to the first answer in Telegram: what README.md promises about commands and
// keystrokes.
func TestFirstDay(t *testing.T) {
	t.Parallel()
	w := newcomer(t)
	began := time.Now()
	w.start() // switchboard run, or a service
	d := w.dialog("setup")
	d.hears("Which model shall answer?")
	d.hears("Number (Enter: the offline model, for reminders only):")
	d.types("1")
	d.hears("Key (not shown):")
	d.hidden()
	w.model.Queue(openaitest.Answer{Text: "Hello."})
	d.pastes(openaiKey)
	d.hears("Model: [gpt-4.1-mini]")
	d.types("")
	d.hears("✓ gpt-4.1-mini of OpenAI answers")
	d.hears("Token (not shown; Enter skips):")
	d.hidden()
	d.pastes(w.telegram.Token())
	d.hears("✓ The bot is @")
	d.hears("Time zone: [Europe/Berlin]")
	d.types("")
	d.hears("✓ The running kernel uses it: the model openai/gpt-4.1-mini, Telegram.")
	d.hears("It answers with a code.")
	w.telegram.Say(anna, "hi")
	code := pairingCode.FindStringSubmatch(w.told(anna, 1).Text)
	if code == nil {
		t.Fatalf("there is no code in %q", w.texts(anna))
	}
	d.hears("Code (Enter skips):")
	d.types("NOSUCH22")
	d.hears("✗ ")
	d.keys, d.lines = d.keys-len("NOSUCH22")-1, d.lines-1 // not a part of the way
	d.hears("Code (Enter skips):")
	d.types(strings.ToLower(code[1]))
	d.hears("as you, the owner.")
	d.hears("The bot answers now.")
	d.ends(0)
	w.model.Queue(openaitest.Answer{Text: "Nice to meet you."})
	n := len(w.texts(anna))
	w.told(anna, 2) // that she is connected
	w.telegram.Say(anna, "hello")
	if got := w.told(anna, max(n, 2)+1).Text; got != "Nice to meet you." {
		t.Errorf("the first answer is %q", got)
	}
	t.Logf("first day: 2 commands (run, setup), %d lines and %d keystrokes in setup (a paste is one), %.1f s with servers "+
		"that answer at once", d.lines, d.keys, time.Since(began).Seconds())
	if d.lines > 6 || d.keys > 20 {
		t.Errorf("setup took %d lines and %d keystrokes: correct README.md", d.lines, d.keys)
	}
	for _, secret := range []string{openaiKey, w.telegram.Token()} {
		if strings.Contains(d.out.String(), secret) {
			t.Errorf("the terminal showed %q", secret)
		}
		if strings.Contains(w.text("config.yaml"), secret) {
			t.Errorf("config.yaml has %q", secret)
		}
	}
}

// What does not work is said and asked again; Ctrl-C keeps what was saved, and leaves the
// terminal as it was.
func TestSetupAsksAgain(t *testing.T) {
	t.Parallel()
	w := newcomer(t)
	w.env["TZ"] = "UTC"
	w.write("# mine\ntimezone: Asia/Tokyo # where I live\n", 0o600, "config.yaml")
	w.write("# keys\nOTHER=1\n", 0o600, "secrets.env")
	d := w.dialog("setup")
	d.hears("Number (")
	d.types("17")
	d.hears("✗ that isn't one of the numbers")
	d.hears("Number (")
	d.types("1")
	d.hears("Key (not shown):")
	d.hidden()
	d.pastes("sk-wrong")
	d.hears("Model: [gpt-4.1-mini]")
	d.types("")
	d.hears("✗ ")
	d.hears("Number (")
	d.types("9")
	d.hears("Address, such as")
	d.types("http://127.0.0.1:1/v1")
	d.hears("A name for it: [server]")
	d.types("")
	d.hears("Key (not shown; Enter: it needs none):")
	d.hidden()
	d.types("")
	d.hears("cannot be reached")
	if got := w.text("config.yaml"); got != "# mine\ntimezone: Asia/Tokyo # where I live" {
		t.Errorf("what does not work is in config.yaml:\n%s", got)
	}
	d.hears("Number (")
	d.types("1")
	d.hears("Key (not shown):")
	d.hidden()
	w.model.Queue(openaitest.Answer{Text: "Hello."})
	d.pastes(openaiKey)
	d.hears("Model: [gpt-4.1-mini]")
	d.types("big")
	d.hears("✓ big of OpenAI answers")
	d.hears("Token (not shown; Enter skips):")
	d.hidden()
	d.pastes("123:wrong")
	d.hears("✗ the token is unknown to Telegram")
	d.hears("Token (not shown; Enter skips):")
	d.hidden()
	if _, err := d.tty.WriteString("12\x03"); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	d.hears("Setup ended. Saved: the model openai/big.")
	d.ends(1)
	if want := "# mine\ntimezone: Asia/Tokyo # where I live\n\n# The language models: docs/models.md has more.\nmodels:\n" +
		"  providers:\n    openai:\n      kind: openai\n      models: [big]"; w.text("config.yaml") != want {
		t.Errorf("config.yaml is:\n%s\nwant:\n%s", w.text("config.yaml"), want)
	}
	if want := "# keys\nOTHER=1\n# The key of OpenAI\nOPENAI_API_KEY=" + openaiKey; w.text("secrets.env") != want {
		t.Errorf("secrets.env is:\n%s", w.text("secrets.env"))
	}
	if !d.echoes() {
		t.Error("the terminal still hides what is typed")
	}
	d = w.dialog("setup") // again: what is set is offered
	d.hears("Number (Enter: as it is: openai/big):")
	d.types("")
	d.hears("Token (not shown; Enter skips):")
	d.types("")
	d.hears("Another channel, discord or slack (Enter skips):")
	d.types("")
	d.hears("Time zone: [Asia/Tokyo]")
	if _, err := d.tty.WriteString("\x04"); err != nil { // Ctrl-D
		t.Fatal(err)
	}
	d.hears("Setup ended. Nothing was changed.")
	d.ends(1)
}

// Who skips Telegram is asked for Discord and Slack. What does not work is asked again, and
// a running kernel takes the rest.
func TestSetupOfOtherChannels(t *testing.T) {
	t.Parallel()
	w := newcomer(t)
	discord, slack := discordtest.Start(t), slacktest.Start(t)
	w.env["DISCORD_API_URL"], w.env["SLACK_API_URL"] = discord.URL(), slack.URL()
	w.start()
	d := w.dialog("setup")
	d.hears("Number (")
	d.types("")
	d.hears("Token (not shown; Enter skips):")
	d.types("")
	another := "Another channel, discord or slack (Enter skips):"
	d.hears(another)
	d.types("telegraph")
	d.hears("✗ \"telegraph\" isn't one of them: type discord or slack")
	d.hears(another)
	d.types("Discord")
	for _, token := range []string{"a.b.wrong", discord.Token()} {
		d.hears("Token (not shown; Enter skips):")
		d.hidden()
		d.pastes(token)
	}
	d.hears("✓ The Discord bot is @")
	d.hears(another)
	d.types("slack")
	for _, app := range []string{"xapp-1-unknown", slack.AppToken()} {
		d.hears("Bot token, xoxb-... (not shown; Enter skips):")
		d.hidden()
		d.pastes(slack.BotToken())
		d.hears("App-level token, xapp-... (not shown; Enter skips):")
		d.hidden()
		d.pastes(app)
	}
	d.hears("✓ The Slack app is @switchboard in Test team.")
	d.hears(another)
	d.types("")
	d.hears("Time zone:")
	d.types("")
	d.hears("✓ The running kernel uses it: Discord, Slack.")
	d.ends(0)
	w.channelIs("discord_channel", "ready")
	w.channelIs("slack_channel", "ready")
	for _, secret := range []string{discord.Token(), slack.BotToken(), slack.AppToken()} {
		if strings.Contains(d.out.String(), secret) || strings.Contains(w.text("config.yaml"), secret) {
			t.Errorf("%q is shown, or in config.yaml", secret)
		}
	}
	d = w.dialog("setup") // again: what is set is kept
	d.hears("Number (")
	d.types("")
	d.hears("Token (not shown; Enter skips):")
	d.types("")
	d.hears(another)
	d.types("slack")
	d.hears("Bot token, xoxb-... (not shown; Enter keeps the one that is set):")
	d.types("")
	d.hears(another)
	d.types("")
	d.hears("Time zone:")
	d.types("")
	d.hears("Nothing was changed.")
	d.ends(0)
}

func TestSetupForScripts(t *testing.T) {
	t.Parallel()
	w := newcomer(t)
	claude := anthropictest.New(t)
	claude.RequireKey("sk-ant-canary")
	w.env["CLAUDE"] = "sk-ant-canary"
	claude.Queue(anthropictest.Answer{Text: "Hello."}, anthropictest.Answer{Text: "Hello."})
	w.write(w.telegram.Token()+"\n", 0o600, "token.txt")
	w.write("# my settings\nchannels:\n  hold: 1h   # patient\n", 0o644, "config.yaml")

	out := w.must("setup", "--yes", "--provider", "anthropic", "--base-url", claude.BaseURL(), "--key-env", "CLAUDE",
		"--model", "claude-test", "--telegram-token-file", w.file("token.txt"), "--timezone", "Europe/Paris")
	for _, want := range []string{
		"✓ claude-test of Anthropic (Claude) answers", "✓ The bot is @", "in Europe/Paris.",
		"Saved: the model anthropic/claude-test, Telegram, the time zone Europe/Paris. What is next:",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if !strings.HasPrefix(w.text("config.yaml"), "# my settings\nchannels:\n  hold: 1h   # patient\n") {
		t.Errorf("config.yaml is:\n%s", w.text("config.yaml"))
	}
	info, err := os.Stat(w.file("secrets.env"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secrets.env: %v, %v", info, err)
	}
	before := w.text("config.yaml") + w.text("secrets.env")

	// Again, nothing changes; a second model comes first, and the first one stays.
	w.must("setup", "--yes", "--provider", "anthropic", "--base-url", claude.BaseURL(), "--key-env", "CLAUDE",
		"--model", "claude-test", "--telegram-token-file", w.file("token.txt"), "--timezone", "Europe/Paris")
	if now := w.text("config.yaml") + w.text("secrets.env"); now != before {
		t.Errorf("the second time changed:\n%s\nto:\n%s", before, now)
	}
	w.start()
	w.telegramReady()
	w.write(openaiKey, 0o600, "key.txt")
	w.model.Queue(openaitest.Answer{Text: "Hello."})
	out = w.must("setup", "--yes", "--provider", "openai", "--key-file", w.file("key.txt"), "--model", "other")
	if !strings.Contains(out, "The running kernel uses it: the model openai/other.") {
		t.Errorf("it says:\n%s", out)
	}
	if !strings.Contains(w.text("config.yaml"), "default: [openai/other, anthropic/claude-test]") {
		t.Errorf("config.yaml is:\n%s", w.text("config.yaml"))
	}
	w.must("config", "check")
	w.model.Queue(openaitest.Answer{Text: "It works."})
	if got := w.attach().ask("hello"); !strings.Contains(got, "It works.") {
		t.Errorf("it answers %q", got)
	}
}

// A script whose answers do not work learns why and changes nothing.
func TestSetupForScriptsRefuses(t *testing.T) {
	t.Parallel()
	w := newcomer(t)
	w.env["WRONG"] = "sk-wrong-canary"
	w.write("two words", 0o600, "words.txt")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a wrong key":        {[]string{"--provider", "openai", "--key-env", "WRONG"}, "key"},
		"no key":             {[]string{"--provider", "openai"}, "OpenAI needs a key: give --key-env or --key-file"},
		"an unset variable":  {[]string{"--provider", "openai", "--key-env", "UNSET"}, "UNSET is not set"},
		"no such provider":   {[]string{"--provider", "nosuch"}, `there is no provider "nosuch": use one of openai,`},
		"no server":          {[]string{"--provider", "mine", "--base-url", "http://127.0.0.1:1", "--model", "m"}, "cannot be reached"},
		"no address":         {[]string{"--provider", "mine", "--base-url", "host", "--model", "m"}, "http:// or https://"},
		"a bad name":         {[]string{"--provider", "My Own", "--base-url", w.model.BaseURL(), "--model", "m", "--no-check"}, "My Own"},
		"a key without one":  {[]string{"--key-env", "WRONG"}, "belong to a provider: add --provider"},
		"a wrong token":      {[]string{"--telegram-token-env", "WRONG"}, "the token is unknown to Telegram"},
		"no file":            {[]string{"--telegram-token-file", w.file("no")}, "no such file"},
		"no end":             {[]string{"--telegram-token-file", "/dev/zero"}, "isn't one word"},
		"not a token":        {[]string{"--telegram-token-file", w.file("words.txt")}, "isn't one word"},
		"a wrong zone":       {[]string{"--timezone", "Nowhere"}, `✗ timezone: "Nowhere" is not a known time zone`},
		"two on one input":   {[]string{"--provider", "openai", "--key-file", "-", "--telegram-token-file", "-"}, "one secret only"},
		"a secret as a flag": {[]string{"--key", "sk-canary"}, "unknown flag: --key"},
	} {
		out, complaints, code := w.cli(append([]string{"setup", "--yes"}, c.args...)...)
		if all := out + complaints; code != 1 || !strings.Contains(all, c.want) {
			t.Errorf("%s: exit status %d, %q, want %q", name, code, all, c.want)
		} else if strings.Contains(all, w.env["WRONG"]) {
			t.Errorf("%s: it shows the secret: %q", name, all)
		}
		for _, file := range []string{"config.yaml", "secrets.env"} {
			if _, err := os.Stat(w.file(file)); err == nil {
				t.Fatalf("%s: %s was written:\n%s", name, file, w.text(file))
			}
		}
	}
	w.write("timezon: UTC\n", 0o600, "config.yaml")
	if _, complaints, code := w.cli("setup", "--yes", "--timezone", "UTC"); code != 1 ||
		!strings.Contains(complaints, "config.yaml has errors; fix them first") || w.text("config.yaml") != "timezon: UTC" {
		t.Errorf("a config.yaml with mistakes: %d, %q", code, complaints)
	}
	c := w.command("setup", "--yes", "--telegram-token-file", "-")
	c.Stdin = strings.NewReader(w.telegram.Token() + "\n")
	w.write("", 0o600, "config.yaml")
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "✓ The bot is @") {
		t.Errorf("a token from standard input: %v, %s", err, out)
	}
	if _, complaints, code := w.cli("setup"); code != 1 || !strings.Contains(complaints, "there is no terminal to ask on") {
		t.Errorf("without a terminal: %d, %q", code, complaints)
	}
}

// The first screen names setup in one line while there is no model.
func TestFirstScreenNamesSetup(t *testing.T) {
	t.Parallel()
	w := newcomer(t)
	w.start()
	d := w.dialog("chat")
	d.hears("offline model: type help")
	d.hears("`switchboard setup` connects a language model and Telegram")
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	w.env["OPENAI_API_KEY"] = openaiKey
	w.stop()
	w.start()
	d = w.dialog("chat")
	d.hears("openai answers")
	d.hears("›")
	if strings.Contains(d.out.String(), "setup") {
		t.Errorf("with a model it shows:\n%s", d.out)
	}
}
