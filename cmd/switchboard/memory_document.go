package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newMemoryExport() *cobra.Command {
	c := &cobra.Command{
		Use: "export", Short: "Write what is remembered as Markdown", Args: cobra.NoArgs,
		Long:    "Writes everything that is remembered as a Markdown document that can be read, edited and imported again.",
		Example: "  switchboard memory export -o memory.md",
	}
	file := c.Flags().StringP("output", "o", "", "a file that does not exist yet, instead of the output")
	scope := c.Flags().String("scope", "", "only one scope")
	c.RunE = withKernel("exporting the memories", func(c *cobra.Command, k *admin.Client, _ []string) error {
		fields := map[string]any{}
		if *scope != "" {
			fields["scope"] = *scope
		}
		arguments, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		document, err := tool(c.Context(), k, exportMemories, arguments)
		if err != nil {
			return err
		}
		if *file == "" {
			out := c.OutOrStdout()
			if p := printerOf(c); p.width > 0 {
				out = p.w
			}
			_, err = io.WriteString(out, document)
			return err
		}
		f, err := os.OpenFile(*file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("writing it: %w", err)
		}
		if _, err = f.WriteString(document); err == nil {
			err = f.Close()
		} else {
			_ = f.Close()
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", *file, err)
		}
		return nil
	})
	return c
}

const (
	// maxDocument is the largest document that is read.
	maxDocument = 64 << 20
	// documentPart is the most of it in one request.
	documentPart = contract.MaxPayload / 2
)

func newMemoryImport() *cobra.Command {
	c := &cobra.Command{
		Use: "import FILE", Short: "Remember what a Markdown document says; - reads the input", Args: cobra.ExactArgs(1),
		Long: "Remembers what a Markdown document says: one that `switchboard memory export` has written, edited or not, or one\n" +
			"that you have written. It is taken over whole or not at all. What it does not hold is kept, unless\n" +
			"--replace is given; an open item that is checked off (- [x]) is forgotten.",
		Example: "  switchboard memory import memory.md\n  switchboard memory import --check memory.md",
	}
	asJSON := jsonFlag(c)
	check := c.Flags().Bool("check", false, "change nothing: only say what would change")
	replace := c.Flags().Bool("replace", false, "forget what the document does not hold")
	scope := c.Flags().String("scope", "", "the scope of what names none (default: personal)")
	yes := c.Flags().BoolP("yes", "y", false, "with --replace: do not ask")
	c.RunE = withKernel("importing", func(c *cobra.Command, k *admin.Client, args []string) error {
		document, err := readDocument(c, args[0])
		if err != nil {
			return err
		}
		fields := map[string]any{}
		if *scope != "" {
			fields["scope"] = *scope
		}
		if *check {
			fields["check"] = true
		}
		if *replace {
			fields["replace"] = true
			if !*check {
				if ok, err := confirm(c, *yes, "Forget what "+args[0]+" does not hold?", "`switchboard memory export` keeps a copy, --check says what would change"); err != nil || !ok {
					return err
				}
			}
		}
		upload, part := rand.Text(), 0
		for ; len(document) > documentPart; part++ {
			end := strings.LastIndexByte(document[:documentPart], '\n') + 1
			if end == 0 {
				return fmt.Errorf("%s has a line of more than %d bytes: this is no document of memories", args[0], documentPart)
			}
			kept := map[string]any{"text": document[:end], "upload": upload, "part": part, "more": true}
			if _, err := callTool[json.RawMessage](c.Context(), k, importMemories, kept); err != nil {
				return err
			}
			document = document[end:]
		}
		if fields["text"] = document; part > 0 {
			fields["upload"], fields["part"] = upload, part
		}
		said, err := callTool[json.RawMessage](c.Context(), k, importMemories, fields)
		if err != nil {
			return err
		}
		return sayMemory(c, *asJSON, said)
	})
	return c
}

func readDocument(c *cobra.Command, name string) (string, error) {
	in := c.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", fmt.Errorf("reading it: %w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading it: %w", err)
	case len(b) > maxDocument:
		return "", fmt.Errorf("it has more than %d MiB", maxDocument>>20)
	case !utf8.Valid(b):
		return "", fmt.Errorf("it is not text in UTF-8")
	}
	return string(b), nil
}

// confirm asks whether something that cannot be undone is meant.
func confirm(c *cobra.Command, yes bool, question, copied string) (bool, error) {
	if yes {
		return true, nil
	}
	if f, ok := c.InOrStdin().(*os.File); !ok || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor is an int
		return false, fmt.Errorf("this can't be undone; add --yes to confirm (%s)", copied)
	}
	p := printerOf(c)
	fmt.Fprint(p.w, question+" [y/N] ")
	answer, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		p.line("Nothing was changed.")
		return false, nil
	}
	return true, nil
}
