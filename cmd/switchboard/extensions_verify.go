package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/sdk/sdktest/rules"
)

func newExtensionsVerify() *cobra.Command {
	c := &cobra.Command{
		Use: "verify DIR", Short: "Check an extension before you install it", Args: cobra.ExactArgs(1),
		Long: "Starts the extension in a directory as the kernel does, plays the kernel to it, and checks each rule of\n" +
			"the protocol: docs/protocol.md has them. It needs no kernel, and changes nothing outside of temporary\n" +
			"directories. Instead of a directory, the id of a built-in extension will do.\n\n" +
			"The extension gets no secrets, unless --secret names them. Its tools are called with made-up arguments,\n" +
			"except those that need an approval. With --quick it is not initialized: the manifest, the start and the\n" +
			"description are checked.\n\n" +
			"The exit status is 0 if all rules hold.",
		Example: "  switchboard extensions verify .\n  switchboard extensions verify . --json\n" +
			"  switchboard extensions verify ./mail --config test.yaml --secret IMAP_PASSWORD",
	}
	quick := c.Flags().Bool("quick", false, "check the manifest, the start and the description only")
	asJSON := jsonFlag(c)
	config := c.Flags().String("config", "", "a YAML or JSON `file` with settings, over the defaults of the manifest")
	secrets := c.Flags().StringArray("secret", nil,
		"give the extension this secret, from the environment variable of its `name`")
	patience := c.Flags().Duration("patience", 10*time.Second, "how long to wait for each answer")
	c.RunE = func(c *cobra.Command, args []string) error {
		h, err := findHome()
		if err != nil {
			return err
		}
		o, err := kernelOptions(h)
		if err != nil {
			return err
		}
		if *quick {
			if *asJSON {
				return errors.New("verify: --json is for the full check: leave out --quick")
			}
			return verifyQuickly(c, args[0], o)
		}
		set, err := candidateSettings(*config, *secrets)
		if err != nil {
			return fmt.Errorf("verify %s: %w", args[0], err)
		}
		return verifyRules(c, args[0], set, o, *patience, *asJSON)
	}
	return c
}

// candidateSettings reads the file with the configuration, and the secrets.
func candidateSettings(file string, secrets []string) (set home.CandidateSettings, err error) {
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return set, fmt.Errorf("--config: %w", err)
		}
		if err := yaml.Unmarshal(data, &set.Config); err != nil {
			return set, fmt.Errorf("--config %s: %w", file, err)
		}
	}
	set.Secrets = map[string]string{}
	for _, name := range secrets {
		value, ok := os.LookupEnv(name)
		if !ok {
			return set, fmt.Errorf("--secret %s: the environment has no such variable", name)
		}
		set.Secrets[name] = value
	}
	return set, nil
}

// verification is the result of a full check as JSON.
type verification struct {
	Extension string         `json:"extension"`
	Version   string         `json:"version"`
	Passed    bool           `json:"passed"`
	Rules     []rules.Result `json:"rules"`
}

// verifyRules checks all rules.
func verifyRules(c *cobra.Command, dir string, set home.CandidateSettings, o home.Options, patience time.Duration,
	asJSON bool,
) error {
	p := printerOf(c)
	began := time.Now()
	candidate, err := home.OpenCandidate(dir, set, o)
	if err != nil {
		return verifyError(dir, err)
	}
	defer candidate.Close()
	m := candidate.Manifest
	if !asJSON {
		p.line("%s %s %s (%s)", p.paint(green, "✓"), m.ID, m.Version, m.Name)
	}
	x := verification{Extension: m.ID, Version: m.Version, Rules: []rules.Result{}}
	if candidate.HasProcess() {
		options := rules.Options{Patience: patience}
		if !asJSON {
			options.Each = func(r rules.Result) { printRule(p, r) }
		}
		x.Rules = rules.Check(c.Context(), subjectOf(candidate), options)
		if err := c.Context().Err(); err != nil {
			return fmt.Errorf("verify %s: %w", dir, err)
		}
	}
	failed := rules.Failed(x.Rules)
	x.Passed = len(failed) == 0
	switch {
	case asJSON:
		if err := printJSON(c, x); err != nil {
			return err
		}
	case !candidate.HasProcess():
		p.line("%s needs no process of its own", p.paint(green, "✓"))
	}
	if len(failed) > 0 {
		return fmt.Errorf("verify %s: %s", dir, plainCount(len(failed), "rule fails", "rules fail"))
	}
	if !asJSON {
		took := time.Since(began).Round(100 * time.Millisecond)
		if candidate.Builtin {
			p.faint(fmt.Sprintf("All rules hold (%s).", took))
		} else {
			p.faint(fmt.Sprintf("All rules hold (%s). Install it: switchboard extensions install %s", took, here(dir)))
		}
	}
	return nil
}

func plainCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// printRule prints one line for a rule, and for a failure what was expected and what to do.
func printRule(p *printer, r rules.Result) {
	switch r.State {
	case rules.Pass:
		p.line("%s %-16s %s", p.paint(green, "✓"), r.Rule, oneLine(r.Seen))
	case rules.Skip:
		p.faint(fmt.Sprintf("- %-16s %s", r.Rule, oneLine(r.Seen)))
	default:
		p.line("%s %-16s %s", p.paint(red, "✗"), r.Rule, oneLine(r.Seen))
		p.line("    expected: %s", r.Expected)
		p.line("    hint: %s", r.Hint)
	}
}

// subjectOf is a candidate as the rules start it.
func subjectOf(c *home.Candidate) rules.Subject {
	return rules.Subject{Spec: c.Spec, SocketDir: c.SocketDir, Start: func(ctx context.Context) (*rules.Process, error) {
		started, err := c.Start(ctx)
		if err != nil {
			return nil, err
		}
		return &rules.Process{
			Conn: started.Conn, Gone: started.Done,
			Kill: func() {
				started.Kill("the process was killed: its verification has ended")
				<-started.Done
				started.Release()
			},
			Cut: func() {
				if conn, ok := started.Conn.(io.Closer); ok {
					_ = conn.Close()
				}
			},
			Quit:   started.Quit,
			Exit:   func() (bool, string) { return started.Exit.Killed, started.Exit.Reason },
			Stdout: func() []string { return started.Lines("stdout") },
			Stderr: func() []string { return started.Lines("stderr") },
		}, nil
	}}
}

// verifyQuickly starts the extension and checks its description.
func verifyQuickly(c *cobra.Command, dir string, o home.Options) error {
	p := printerOf(c)
	v, err := home.Verify(c.Context(), dir, o)
	ok := p.paint(green, "✓")
	if v.Manifest != nil && v.Manifest.ID != "" {
		p.line("%s %s %s (%s)", ok, v.Manifest.ID, v.Manifest.Version, v.Manifest.Name)
	}
	if err != nil {
		if v.Crash != "" {
			err = fmt.Errorf("%w\nits output:\n%s", err, indent(v.Crash, "  "))
		}
		return verifyError(dir, err)
	}
	switch summary := v.Summary(); {
	case v.Description == nil:
		p.line("%s needs no process of its own", ok)
	case summary == "":
		return fmt.Errorf("verify %s: the extension starts, but provides no channel, tool, model or event handler", dir)
	default:
		p.line("%s starts and describes itself: %s", ok, summary)
		p.line("%s provides only what its manifest grants", ok)
	}
	p.faint("Install it: switchboard extensions install " + here(dir))
	return nil
}

// verifyError says why a verification did not take place.
func verifyError(dir string, err error) error {
	between := " "
	if strings.Contains(err.Error(), "\n") {
		between = "\n"
	}
	return fmt.Errorf("verify %s:%s%w", dir, between, err)
}
