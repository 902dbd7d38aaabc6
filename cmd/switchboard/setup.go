package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/web"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// setupFlags are the answers that flags give.
type setupFlags struct {
	provider, baseURL, model  string
	keyEnv, keyFile           string
	telegramEnv, telegramFile string
	discordEnv, discordFile   string
	slackBotEnv, slackBotFile string
	slackAppEnv, slackAppFile string
	timezone                  string
	yes, noCheck              bool
}

func newSetupCommand() *cobra.Command {
	var f setupFlags
	c := &cobra.Command{
		Use: "setup", Short: "Connect a language model and Telegram, and set the time zone", Args: cobra.NoArgs,
		Long: "Asks which model answers, for a Telegram bot (Enter there: for Discord or Slack), and for your time\n" +
			"zone. It tries each answer before it writes config.yaml and secrets.env, and keeps what is in them.\n" +
			"Enter skips a step, and you can run it again at any time, also while Switchboard runs.\n\n" +
			"Scripts answer with flags, and with --yes nothing is asked. Secrets come from a file, from standard input\n" +
			"(-), or from the environment, never from an argument, which other users of the machine can read.",
		Example: "  switchboard setup\n" +
			"  switchboard setup --yes --provider anthropic --key-env ANTHROPIC_API_KEY --timezone Europe/Berlin\n" +
			"  switchboard setup --yes --provider ollama --model qwen3\n" +
			"  switchboard setup --yes --telegram-token-file token.txt\n" +
			"  switchboard setup --yes --discord-token-file token.txt\n" +
			"  switchboard setup --yes --slack-bot-token-file bot.txt --slack-app-token-file app.txt",
	}
	flags := c.Flags()
	flags.StringVar(&f.provider, "provider", "", "whose model answers: "+strings.Join(providerNames(), ", ")+
		", or a name of your own with --base-url")
	flags.StringVar(&f.baseURL, "base-url", "", "address of a server with OpenAI's API")
	flags.StringVar(&f.model, "model", "", "name of the model")
	flags.StringVar(&f.keyEnv, "key-env", "", "environment variable with the provider's key")
	flags.StringVar(&f.keyFile, "key-file", "", "file with the provider's key; -: standard input")
	flags.StringVar(&f.telegramEnv, "telegram-token-env", "", "environment variable with the bot's token")
	flags.StringVar(&f.telegramFile, "telegram-token-file", "", "file with the bot's token; -: standard input")
	flags.StringVar(&f.discordEnv, "discord-token-env", "", "environment variable with the token of a Discord bot")
	flags.StringVar(&f.discordFile, "discord-token-file", "", "file with the token of a Discord bot; -: standard input")
	flags.StringVar(&f.slackBotEnv, "slack-bot-token-env", "", "environment variable with the bot token of a Slack app")
	flags.StringVar(&f.slackBotFile, "slack-bot-token-file", "",
		"file with the bot token of a Slack app; -: standard input")
	flags.StringVar(&f.slackAppEnv, "slack-app-token-env", "", "environment variable with its app-level token")
	flags.StringVar(&f.slackAppFile, "slack-app-token-file", "", "file with its app-level token; -: standard input")
	flags.StringVar(&f.timezone, "timezone", "", "time zone, such as Europe/Berlin")
	flags.BoolVarP(&f.yes, "yes", "y", false, "ask nothing: do what the flags say")
	flags.BoolVar(&f.noCheck, "no-check", false, "write without trying the answers, for example without a network")
	completion := cobra.FixedCompletions(providerNames(), cobra.ShellCompDirectiveNoFileComp)
	if err := c.RegisterFlagCompletionFunc("provider", completion); err != nil {
		panic(err) // there is no such flag
	}
	c.MarkFlagsMutuallyExclusive("key-env", "key-file")
	c.MarkFlagsMutuallyExclusive("telegram-token-env", "telegram-token-file")
	c.MarkFlagsMutuallyExclusive("discord-token-env", "discord-token-file")
	c.MarkFlagsMutuallyExclusive("slack-bot-token-env", "slack-bot-token-file")
	c.MarkFlagsMutuallyExclusive("slack-app-token-env", "slack-app-token-file")
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := newSetup(c, f)
		if err != nil {
			return fmt.Errorf("set up: %w", err)
		}
		err = s.run(c.Context())
		if c.Context().Err() != nil || errors.Is(err, errLeft) {
			s.p.line("\nSetup ended. %s", s.kept())
			return errReported
		}
		if err != nil && !errors.Is(err, errReported) {
			err = fmt.Errorf("set up: %w", err)
		}
		return err
	}
	return c
}

// setup is one run of `switchboard setup`.
type setup struct {
	setupFlags
	home *config.Home
	p    *printer
	ask  *questions // nil: nothing is asked

	settings *config.Config
	secrets  *config.Secrets
	saved    []string // what was written, for people
	chosen   string   // the model that was set, as <provider>/<model>
	bot      string   // user name of the bot that was set
	listed   bool     // the providers were shown
	failed   bool     // a step that a flag asked for
	// offerOthers asks for channels besides Telegram.
	offerOthers bool
}

func newSetup(c *cobra.Command, f setupFlags) (*setup, error) {
	s := &setup{setupFlags: f, p: printerOf(c)}
	if !f.yes {
		if !term.IsTerminal(int(os.Stdin.Fd())) { //nolint:gosec // a descriptor is an int
			return nil, errors.New("there is no terminal to ask on: answer with flags and --yes (`switchboard setup --help`)")
		}
		s.ask = &questions{in: os.Stdin, p: s.p}
	}
	if onInput := slices.DeleteFunc([]string{
		f.keyFile, f.telegramFile, f.discordFile, f.slackBotFile, f.slackAppFile,
	}, func(file string) bool { return file != "-" }); len(onInput) > 1 {
		return nil, errors.New("standard input has one secret only: give the other one in a file")
	}
	if f.provider == "" && f.baseURL+f.model+f.keyEnv+f.keyFile != "" {
		return nil, errors.New("--base-url, --model and the key belong to a provider: add --provider")
	}
	h, err := openHome()
	if err != nil {
		return nil, err
	}
	s.home = h
	return s, s.read()
}

// read reads the files as they are now.
func (s *setup) read() (err error) {
	if s.settings, err = config.Load(s.home.Config()); err != nil {
		return fmt.Errorf("config.yaml has errors; fix them first:\n%w", err)
	}
	values, err := config.LoadSecrets(s.home.Secrets())
	if err != nil {
		return err
	}
	s.secrets = config.NewSecrets(values, os.LookupEnv)
	return nil
}

func (s *setup) run(ctx context.Context) error {
	if s.ask != nil {
		s.p.line("Switchboard is set up in %s.", s.home.Path())
		s.p.faint("Enter takes what is in [brackets] or skips the step; Ctrl-C ends, and keeps what was saved.")
	}
	for _, step := range []func(context.Context) error{
		s.setModel, s.setTelegram, s.setDiscord, s.setSlack, s.setOthers, s.setTimezone,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if s.ask != nil && !s.settings.EnabledExtension(web.ID, true) {
		s.p.faint("Searching the web is off; docs/web.md says how to allow it.")
	}
	s.p.line("")
	if len(s.saved) == 0 {
		s.p.line("Nothing was changed.")
	} else if err := s.handOver(ctx); err != nil {
		return err
	}
	if s.failed {
		return errReported
	}
	return nil
}

// kept tells what an ended setup leaves.
func (s *setup) kept() string {
	if len(s.saved) == 0 {
		return "Nothing was changed."
	}
	return "Saved: " + strings.Join(s.saved, ", ") + "."
}

// fail reports a failed step. With questions the caller asks again.
func (s *setup) fail(err error) {
	text := message(err)
	if found := (config.Problems)(nil); errors.As(err, &found) && len(found) == 1 {
		text = found[0].Path + ": " + found[0].Message // the line in the file means nothing here
	}
	s.p.line("%s %s", s.p.paint(red, "✗"), text)
	s.failed = s.failed || s.ask == nil
}

func (s *setup) done(format string, args ...any) {
	s.p.line("%s %s", s.p.paint(green, "✓"), fmt.Sprintf(format, args...))
}

// save writes secrets first, so that no setting names a missing one.
func (s *setup) save(what string, secrets []secret, settings ...config.Setting) error {
	current, err := existing(s.home.Config())
	if err != nil {
		return err
	}
	changed := current
	if len(settings) > 0 {
		if len(current) == 0 {
			current = []byte("# The settings of Switchboard: docs/configuration.md has all of them.\n")
		}
		if changed, err = config.Edit(s.home.Config(), current, settings...); err != nil {
			return err
		}
	}
	if len(secrets) > 0 {
		text, err := existing(s.home.Secrets())
		for _, x := range secrets {
			if err == nil {
				text, err = config.EditSecret(s.home.Secrets(), text, x.name, x.value, x.comment)
			}
		}
		if err == nil {
			err = config.Replace(s.home.Secrets(), text)
		}
		if err != nil {
			return err
		}
	}
	if len(settings) > 0 && string(changed) != string(current) {
		if err := config.Replace(s.home.Config(), changed); err != nil {
			return err
		}
	}
	s.saved = append(s.saved, what)
	return s.read()
}

type secret struct{ name, value, comment string }

func existing(file string) ([]byte, error) {
	text, err := filewatch.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// given returns the secret that flags name; ok: they name one.
func (s *setup) given(env, file string) (value string, ok bool, err error) {
	switch {
	case env != "":
		if value = strings.TrimSpace(os.Getenv(env)); value == "" {
			return "", true, fmt.Errorf("the environment variable %s is not set", env)
		}
		return value, true, nil
	case file == "":
		return "", false, nil
	}
	in := os.Stdin
	if file != "-" {
		if in, err = os.Open(file); err != nil {
			return "", true, err
		}
		defer in.Close()
	}
	data, err := io.ReadAll(io.LimitReader(in, maxWord+1))
	if err == nil {
		value, err = oneWord(string(data))
	}
	if err != nil {
		return "", true, fmt.Errorf("read the secret in %s: %w", file, err)
	}
	return value, true, nil
}

// maxWord bounds a key or a token, in bytes.
const maxWord = 4096

// oneWord checks a key or a token that was read or typed.
func oneWord(s string) (string, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return "", errors.New("it is empty")
	case len(s) > maxWord || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return "", errors.New("it isn't one word: give the key or token only")
	}
	return s, nil
}

// takeOver bounds the wait for a running kernel to use what was written.
const takeOver = 20 * time.Second

// handOver waits until a running kernel uses what was written, and tells what comes next.
func (s *setup) handOver(ctx context.Context) error {
	k, err := dial(ctx, s.home)
	if err != nil {
		s.p.line("Saved: %s. What is next:", strings.Join(s.saved, ", "))
		s.p.line("  switchboard                   starts it, with a chat")
		s.p.line("  switchboard service install   keeps it running, also after a restart of the machine")
		if s.bot != "" {
			s.p.line("Then write to https://t.me/%s: it answers with a code for `switchboard pairing approve`.", s.bot)
		}
		return nil
	}
	defer k.Close()
	late, cancel := context.WithTimeout(ctx, takeOver)
	defer cancel()
	for problem := "starting"; problem != ""; {
		if problem, err = s.missing(late, k); err != nil {
			problem = message(err)
		}
		if problem == "" {
			break
		}
		select {
		case <-late.Done():
			if ctx.Err() != nil {
				return errLeft
			}
			s.fail(fmt.Errorf("the running kernel doesn't use all of it yet (%s): `switchboard doctor` says why", problem))
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.done("The running kernel uses it: %s.", strings.Join(s.saved, ", "))
	if s.bot == "" {
		return nil
	}
	return s.pair(ctx, k)
}

// missing returns what the kernel does not use yet.
func (s *setup) missing(ctx context.Context, k *admin.Client) (string, error) {
	status, err := admin.ReadStatus(ctx, k)
	if err != nil {
		return "", err
	}
	if s.chosen != "" && (len(status.Models) == 0 || !sameModel(status.Models[0], s.chosen)) {
		return "the model", nil
	}
	for _, x := range status.Extensions {
		if s.bot != "" && x.Id == telegramID && (x.Readiness != "ready" || !strings.Contains(x.Detail, s.bot)) {
			return "Telegram: " + x.Readiness + " " + x.Detail, nil
		}
	}
	return "", nil
}

// sameModel reports whether a model of the kernel's order is the one that was set; <id>/* is
// the default model of a provider.
func sameModel(inUse, set string) bool {
	provider, all := strings.CutSuffix(inUse, "/*")
	return inUse == set || all && strings.HasPrefix(set, provider+"/")
}

// pair admits the person who sets it up.
func (s *setup) pair(ctx context.Context, k *admin.Client) error {
	people, err := k.People(ctx, &adminv1.PeopleRequest{})
	admitted := err == nil && slices.ContainsFunc(people.GetApproved(), func(x *adminv1.Account) bool {
		return x.Channel == telegramID
	})
	if admitted || len(s.settings.Channels.Of(telegramID).AllowFrom) > 0 {
		return nil
	}
	if s.ask == nil {
		s.p.line("Write to https://t.me/%s: it answers with a code for `switchboard pairing approve`.", s.bot)
		return nil
	}
	s.p.line("\nWrite to https://t.me/%s now. It answers with a code.", s.bot)
	for {
		code, err := s.ask.text(ctx, "Code (Enter skips):", "")
		if err != nil || code == "" {
			return err
		}
		one, err := k.Approve(ctx, &adminv1.ApproveRequest{Code: code})
		if err == nil {
			err = s.p.approved(ctx, k, one, "")
			s.done("The bot answers now.")
			return err
		}
		s.fail(err)
	}
}
