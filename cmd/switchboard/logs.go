package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home/config"
)

// followEvery is the interval of checks for new lines.
const followEvery = 200 * time.Millisecond

func newLogsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "logs [extension|kernel]", Short: "Show the logs of the kernel and its extensions", Args: cobra.MaximumNArgs(1),
		Long: "Shows the logs of the home ordered by time, or only that of one extension or of the kernel. It needs\nno " +
			"running kernel.",
		Example: "  switchboard logs -f\n  switchboard logs telegram_channel -n 200",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if home, err := findHome(); err == nil && len(args) == 0 {
				return logNames(home), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	asJSON := c.Flags().Bool("json", false, "print the raw lines of the files")
	n := c.Flags().IntP("lines", "n", 50, "how many of the newest lines")
	follow := c.Flags().BoolP("follow", "f", false, "keep showing new ones until interrupted")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *n < 0 {
			return fmt.Errorf("read the logs: -n %d: give 0 or more", *n)
		}
		home, err := findHome()
		if err != nil {
			return err
		}
		l := &logReader{dir: logDir(home), print: printerOf(c).logLine, several: len(args) == 0}
		if *asJSON {
			l.print = func(line logLine, _ bool) { fmt.Fprintln(safeJSON{c.OutOrStdout()}, line.raw) }
		}
		if len(args) == 1 {
			l.only = args[0]
			if !slices.Contains(logNames(home), l.only) && !*follow {
				if len(logNames(home)) == 0 {
					return errors.New("there are no logs yet: no kernel has run on this home")
				}
				return fmt.Errorf("%s has no logs; these have: %s", l.only, strings.Join(logNames(home), ", "))
			}
		}
		if err := l.tail(*n); err != nil {
			return fmt.Errorf("read the logs: %w", err)
		}
		if *follow {
			return l.follow(c.Context())
		}
		if len(logNames(home)) == 0 {
			fmt.Fprintf(c.ErrOrStderr(), "There are no logs yet: no kernel has run on %s.\n", home.Path())
		}
		return nil
	}
	return c
}

func logDir(home *config.Home) string { return filepath.Join(home.Path(), "logs") }

// logNames returns the names of all logs.
func logNames(home *config.Home) (names []string) {
	files, _ := filepath.Glob(filepath.Join(logDir(home), "*.log"))
	for _, f := range files {
		if name, _ := logName(f); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// logName returns the name of the log that a file belongs to. A rotated file has a dash and
// a time in its name; names of extensions have no dash.
func logName(file string) (name string, old bool) {
	name = strings.TrimSuffix(filepath.Base(file), ".log")
	name, _, old = strings.Cut(name, "-")
	return name, old
}

// logLine is one line of a log.
type logLine struct {
	from   string
	at     time.Time
	order  time.Time // at, or that of the previous line of the file
	level  string
	module string
	text   string
	fields []string
	raw    string
}

func parseLogLine(from, raw string) logLine {
	l := logLine{from: from, raw: raw, text: raw}
	decoder := json.NewDecoder(strings.NewReader(raw))
	var named map[string]json.RawMessage
	if decoder.Decode(&named) != nil || named == nil {
		return l
	}
	take := func(key string) (s string) {
		_ = json.Unmarshal(named[key], &s)
		delete(named, key)
		return s
	}
	l.at, _ = time.Parse(time.RFC3339, take("@timestamp"))
	l.level, l.module, l.text = take("@level"), take("@module"), take("@message")
	delete(named, "@caller")
	for key, value := range named {
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = string(value)
		}
		if strings.ContainsAny(s, " \"") && !strings.Contains(s, "\n") {
			s = fmt.Sprintf("%q", s)
		}
		l.fields = append(l.fields, key+"="+s)
	}
	slices.Sort(l.fields)
	return l
}

func (p *printer) logLine(l logLine, several bool) {
	at := "                   "
	if !l.at.IsZero() {
		at = l.at.In(p.zone).Format("01-02 15:04:05.000 ")
	}
	c := map[string]paint{"error": red, "warn": yellow, "debug": gray, "trace": gray}[l.level]
	who := ""
	if several {
		who = fmt.Sprintf("%-17s ", l.from)
	}
	// The first part of the module is the name of the log.
	if _, part, ok := strings.Cut(l.module, "."); ok && part != "" {
		who += part + ": "
	}
	head := p.paint(gray, at) + p.paint(c, fmt.Sprintf("%-5s ", l.level)) + p.paint(gray, who)
	var short []string
	var long strings.Builder
	for _, f := range l.fields {
		if strings.Contains(f, "\n") {
			long.WriteString("\n" + indent(f, "      "))
		} else {
			short = append(short, f)
		}
	}
	p.line("%s%s%s", head, strings.TrimRight(l.text, "\n"), suffix(p, short)+long.String())
}

func suffix(p *printer, fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	return "  " + p.paint(gray, strings.Join(fields, " "))
}

// logReader reads the log files of a directory.
type logReader struct {
	dir     string
	only    string // one name; empty: all
	several bool
	print   func(l logLine, several bool)
	offset  map[string]int64 // of the current files
}

func (l *logReader) files() (current, old []string) {
	all, _ := filepath.Glob(filepath.Join(l.dir, "*.log"))
	for _, f := range all {
		name, isOld := logName(f)
		switch {
		case l.only != "" && name != l.only:
		case isOld:
			old = append(old, f)
		default:
			current = append(current, f)
		}
	}
	return current, old
}

// tail prints the newest lines of all files.
func (l *logReader) tail(n int) error {
	l.offset = map[string]int64{}
	var lines []logLine
	current, old := l.files()
	for i, f := range append(current, old...) {
		if i == len(current) && len(lines) >= n {
			break // rotated files have older lines
		}
		read, size, err := readLog(f, 0)
		if err != nil {
			return err
		}
		lines = append(lines, read...)
		l.offset[f] = size
	}
	slices.SortStableFunc(lines, func(a, b logLine) int { return a.order.Compare(b.order) })
	for _, line := range lines[max(0, len(lines)-n):] {
		l.print(line, l.several)
	}
	return nil
}

// readLog reads complete lines from an offset, and returns where it stopped.
func readLog(file string, offset int64) (lines []logLine, end int64, err error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < offset {
		offset = 0 // the file was rotated
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, 0, err
	}
	from, _ := logName(file)
	var last time.Time
	for r := bufio.NewReader(f); ; {
		raw, err := r.ReadBytes('\n')
		if err != nil {
			return lines, offset, nil //nolint:nilerr // the last line is incomplete
		}
		offset += int64(len(raw))
		if raw = bytes.TrimSpace(raw); len(raw) > 0 {
			line := parseLogLine(from, string(raw))
			if !line.at.IsZero() {
				last = line.at
			}
			line.order = last
			lines = append(lines, line)
		}
	}
}

// follow prints new lines until ctx ends.
func (l *logReader) follow(ctx context.Context) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		current, _ := l.files()
		for _, f := range current {
			lines, end, err := readLog(f, l.offset[f])
			if err != nil {
				return fmt.Errorf("read the logs: %w", err)
			}
			l.offset[f] = end
			for _, line := range lines {
				l.print(line, l.several)
			}
		}
	}
}
