package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// paint is a color.
type paint int

const (
	plain paint = iota
	red
	green
	yellow
	gray
)

var codes = [...]string{"\x1b[39m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[90m"}

// printer writes for people.
type printer struct {
	w     io.Writer
	color bool
	width int // of the terminal; 0: not a terminal
	zone  *time.Location
}

func printerOf(c *cobra.Command) *printer {
	p := &printer{zone: time.Local}
	if f, ok := c.OutOrStdout().(*os.File); ok && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor is an int
		p.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		p.width, _, _ = term.GetSize(int(f.Fd())) //nolint:gosec // likewise
	}
	p.w = safeText{c.OutOrStdout(), p.color}
	if home, err := findHome(); err == nil {
		if settings, err := config.Load(home.Config()); err == nil {
			p.zone, _ = settings.Zone(config.ThisMachine())
		}
	}
	return p
}

func (p *printer) paint(c paint, s string) string {
	if !p.color {
		return s
	}
	return codes[c] + s + codes[plain]
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func (p *printer) faint(s string) { fmt.Fprintln(p.w, p.paint(gray, s)) }

func oneLine(s string) string { return strings.Join(strings.Fields(markdown.Clean(s)), " ") }

// shorten cuts a text to one line.
func shorten(s string, limit int) string {
	s = oneLine(s)
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

func quote(s string) string { return "“" + shorten(s, 60) + "”" }

// clock formats a time, without the date if it is today.
func (p *printer) clock(t time.Time) string {
	t = t.In(p.zone)
	if now := time.Now().In(p.zone); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// day formats a time to come: without the date if it is today.
func (p *printer) day(t time.Time) string {
	t = t.In(p.zone)
	switch now := time.Now().In(p.zone); {
	case t.Year() != now.Year():
		return t.Format("Mon 2 Jan 2006 15:04")
	case t.YearDay() != now.YearDay():
		return t.Format("Mon 2 Jan 15:04")
	}
	return t.Format("15:04")
}

func ago(t time.Time) string { return humanize.Time(t) }

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// stateColor returns the color of a state.
func stateColor(s string) paint {
	switch s {
	case "active", "ready", "delivered", "done", "ok", "running", "concluded":
		return green
	case "failed", "invalid", "dead", "error", "interrupted", "unavailable":
		return red
	case "backing_off", "busy", "degraded", "starting", "stopping", "pending", "in flight", "queued", "paused", "timeout",
		"cancelled", "capped", "not_allowed":
		return yellow
	case "unconfigured", "offline", "disabled", "inactive", "idle":
		return gray
	}
	return plain
}

func state(s string) cell { return cell{s, stateColor(s)} }

// jsonFlag adds --json.
func jsonFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "print JSON")
}

// printJSON prints a value with field names that programs can rely on.
func printJSON(c *cobra.Command, v any) error {
	e := json.NewEncoder(safeJSON{c.OutOrStdout()})
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(asJSON(v)); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// asJSON converts messages for printing.
func asJSON(v any) any {
	switch m := v.(type) {
	case json.Marshaler: // first, as it may also be a message
	case proto.Message:
		return admin.JSON(m)
	}
	return v
}

func asJSONList[T any](all []T) []any {
	out := make([]any, len(all))
	for i, x := range all {
		out[i] = asJSON(x)
	}
	return out
}

// list prints a list: as JSON, as a table, or the sentence for none.
func list[T any](c *cobra.Command, toJSON bool, all []T, header, none string, row func(*printer, T) []cell) error {
	if toJSON {
		return printJSON(c, asJSONList(all))
	}
	p := printerOf(c)
	if len(all) == 0 {
		p.faint(none)
		return nil
	}
	rows := make([][]cell, len(all))
	for i, x := range all {
		rows[i] = row(p, x)
	}
	p.table(header, rows)
	return nil
}
