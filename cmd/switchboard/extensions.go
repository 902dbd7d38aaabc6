package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/mcp"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// States of an extension that the kernel does not start.
const (
	stateDisabled   = "disabled"    // by config.yaml
	stateInvalid    = "invalid"     // its files are wrong
	stateNotAllowed = "not_allowed" // the owner did not allow it
)

func newExtensionsCommand() *cobra.Command {
	return group("extensions", "Extensions and their state",
		newExtensionsList(), newExtensionsShow(), newExtensionsInstall(), newExtensionsUpdate(), newExtensionsRemove(),
		newExtensionsEnable(), newExtensionsDisable(), newExtensionsRestart(), newExtensionsVerify(),
		newExtensionsNew(), newExtensionsDev(),
		newExtensionsServers(), newExtensionsAllow(), newExtensionsRefuse())
}

func newExtensionsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the extensions, running or not", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("list the extensions", func(c *cobra.Command, k *admin.Client, _ []string) error {
		all, err := admin.Extensions(c.Context(), k)
		if err != nil {
			return err
		}
		s, err := k.Status(c.Context(), &adminv1.StatusRequest{})
		if err != nil {
			return err
		}
		admin.NoteBusy(all, s.Waiting, time.Now())
		servers, err := readServers(c.Context(), k, all)
		if err != nil && c.Context().Err() == nil {
			fmt.Fprintln(c.ErrOrStderr(), message(err))
		}
		for _, x := range servers {
			all = append(all, serverRow(x))
		}
		noteUnused(all)
		return list(c, *asJSON, all, "ID NAME VERSION KIND STATE READINESS RESTARTS SINCE SANDBOX DETAIL |"+
			" SANDBOX VERSION NAME SINCE KIND RESTARTS",
			"There are no extensions.",
			func(_ *printer, x *adminv1.Extension) []cell {
				detail := detailOf(x)
				if x.Problem != "" && x.State != stateInvalid {
					detail = strings.TrimSpace(detail + " its last edit isn't in effect: see `switchboard status`")
				}
				return []cell{
					text(x.Id), text(dash(x.Name)), text(dash(x.Version)), text(dash(strings.Join(x.Kinds, ", "))), state(x.State),
					state(dash(x.Readiness)), text(fmt.Sprint(x.Restarts)), text(since(x.SinceUs)), sandboxCell(x), text(detail),
				}
			})
	})
	return c
}

// noteUnused adds what extensions provide or wait for in vain to their details.
func noteUnused(all []*adminv1.Extension) {
	h, err := findHome()
	if err != nil {
		return
	}
	seen, err := inspect(h)
	if err != nil {
		return // `switchboard doctor` says why
	}
	for _, x := range all {
		for _, e := range seen.Entries {
			if e.ID == x.Id && len(e.Unused) > 0 && x.Detail == "" {
				x.Detail = strings.Join(e.Unused, "; ")
			}
		}
	}
}

// sandboxCell shows the level of an extension's sandbox.
func sandboxCell(x *adminv1.Extension) cell {
	if x.Sandbox == nil {
		return text("-")
	}
	return text(x.Sandbox.Level)
}

func newExtensionsRestart() *cobra.Command {
	c := &cobra.Command{
		Use: "restart ID", Short: "Restart an extension or an MCP server, also one that failed", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(extensionIDs),
		Long: "Stops an extension gracefully, if it runs, and starts it again. This resets its earlier failures.\n" +
			"Unfinished deliveries are repeated; nothing is lost. Built-in extensions that share a process restart\n" +
			"together; the output lists them. An MCP server (mcp/NAME) starts again when it is needed.",
	}
	asJSON := jsonFlag(c)
	restart := byName(extensionIDs, 1, func(c *cobra.Command, k *admin.Client, args []string) error {
		x, restarted, err := admin.Restart(c.Context(), k, args[0])
		if err != nil {
			return hinted(err, "switchboard extensions list")
		}
		if *asJSON {
			return printJSON(c, admin.JSON(x).With("restarted", restarted))
		}
		if x.State == "failed" || x.State == "backing_off" {
			return fmt.Errorf("the extension is %s: %s; see `switchboard logs %s`", strings.ReplaceAll(x.State, "_", " "),
				x.LastError, x.Id)
		}
		p := printerOf(c)
		p.line("%s is %s%s.", x.Id, p.paint(stateColor(x.State), x.State), also(x.Readiness))
		others := slices.DeleteFunc(slices.Clone(restarted), func(id string) bool { return id == x.Id })
		if len(others) > 0 {
			p.line("These share its process and restarted with it: %s.", strings.Join(others, ", "))
		}
		if x.Detail != "" {
			p.faint(x.Detail)
		}
		return nil
	})
	c.RunE = withKernel("restart", func(c *cobra.Command, k *admin.Client, args []string) error {
		if server, ok := serverOf(args[0]); ok {
			words := map[string]any{"words": []string{"restart", server}}
			return hinted(runTool(c, k, mcp.ID+"/servers", words, *asJSON), "switchboard extensions servers")
		}
		return restart(c, k, args)
	})
	return c
}

func also(readiness string) string {
	if readiness == "" || readiness == "ready" {
		return ""
	}
	return " (" + readiness + ")"
}

// here returns a path that is not taken for a name.
func here(dir string) string {
	if dir = filepath.Clean(dir); filepath.IsAbs(dir) || strings.HasPrefix(dir, ".") {
		return dir
	}
	return "./" + dir
}

// indent adds a prefix to every line that is not empty.
func indent(s, by string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			lines[i] = by + l
		}
	}
	return strings.Join(lines, "\n")
}
