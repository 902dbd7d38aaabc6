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
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newMemoryExport() *cobra.Command {
	c := &cobra.Command{
		Use: "export", Short: "Write all memories as Markdown", Args: cobra.NoArgs,
		Long:    "Writes all memories as a Markdown document that you can read, edit and import again.",
		Example: "  switchboard memory export -o memory.md",
	}
	file := c.Flags().StringP("output", "o", "", "write to a new file")
	scope := c.Flags().String("scope", "", "only one scope")
	c.RunE = withKernel("export the memories", func(c *cobra.Command, k *admin.Client, _ []string) error {
		fields := map[string]any{}
		if *scope != "" {
			fields["scope"] = *scope
		}
		arguments, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		document, err := tool(c.Context(), k, &adminv1.CallToolRequest{Name: exportMemories, Arguments: arguments})
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
			return fmt.Errorf("write the document: %w", err)
		}
		if _, err = f.WriteString(document); err == nil {
			err = f.Close()
		} else {
			_ = f.Close()
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", *file, err)
		}
		return nil
	})
	return c
}

const (
	// maxDocument bounds the size of a document.
	maxDocument = 64 << 20
	// documentPart bounds the part of it in one request.
	documentPart = contract.MaxPayload / 2
)

func newMemoryImport() *cobra.Command {
	c := &cobra.Command{
		Use: "import FILE", Short: "Import memories from a Markdown document; - reads the input", Args: cobra.ExactArgs(1),
		Long: "Imports memories from a Markdown document: one from `switchboard memory export`, edited or not, or your\n" +
			"own. It imports the whole document or nothing. Other memories are kept, unless you give --replace; an\n" +
			"open item that is checked off (- [x]) is forgotten.",
		Example: "  switchboard memory import memory.md\n  switchboard memory import --check memory.md",
	}
	asJSON := jsonFlag(c)
	check := c.Flags().Bool("check", false, "only show what would change")
	replace := c.Flags().Bool("replace", false, "forget memories that the document does not have")
	scope := c.Flags().String("scope", "", "the scope for items without one (default: personal)")
	yes := c.Flags().BoolP("yes", "y", false, "with --replace: do not ask")
	c.RunE = withKernel("import", func(c *cobra.Command, k *admin.Client, args []string) error {
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
				if ok, err := confirm(c, *yes, "Forget memories that "+args[0]+" does not have?",
					"`switchboard memory export` keeps a copy, --check shows what would change"); err != nil || !ok {
					return err
				}
			}
		}
		upload, part := rand.Text(), 0
		for ; len(document) > documentPart; part++ {
			end := strings.LastIndexByte(document[:documentPart], '\n') + 1
			if end == 0 {
				return fmt.Errorf("%s has a line of more than %d bytes, so it is not a document of memories", args[0], documentPart)
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
		return runTool(c, k, importMemories, fields, *asJSON)
	})
	return c
}

func readDocument(c *cobra.Command, name string) (string, error) {
	in := c.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", fmt.Errorf("read the document: %w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the document: %w", err)
	case len(b) > maxDocument:
		return "", fmt.Errorf("the document has more than %d MiB", maxDocument>>20)
	case !utf8.Valid(b):
		return "", fmt.Errorf("the document is not UTF-8 text")
	}
	return string(b), nil
}

// confirm asks for confirmation of an irreversible action.
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
