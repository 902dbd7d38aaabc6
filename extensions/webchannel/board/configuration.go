package board

import (
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// configuration shows config.yaml with its mistakes, and the state of the installation.
func (b *board) configuration(mux *http.ServeMux) {
	b.page(mux, "/board/configuration", owners, door.ScopeAdmin, func(q *request) (*sheet, error) {
		c, err := b.Read.Configuration(q.Context(), &adminv1.ConfigurationRequest{})
		if err != nil {
			return nil, err
		}
		status, err := b.Read.Status(q.Context(), &adminv1.StatusRequest{})
		if err != nil {
			return nil, err
		}
		problems := slices.Clone(c.GetProblems())
		for _, p := range append(slices.Clone(status.GetProblems()), status.GetDamage()) {
			if p != "" && !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
		state := block{Problems: problems, Facts: []fact{
			{q.say("Version"), text(status.GetVersion())}, {q.say("Running since"), q.at(status.GetStartedAtUs())},
			{q.say("Home"), cell{Text: status.GetHome(), Code: true}},
			{q.say("Store"), text(humanize.IBytes(uint64(max(0, status.GetStoreBytes()))))},
			{q.say("Models"), text(dash(strings.Join(status.GetModels(), ", ")))},
			{q.say("Time zone"), text(status.GetTimezone())}, {q.say("Sandbox"), text(dash(q.translate(status.GetSandbox())))},
		}}
		if len(problems) == 0 {
			state.Text = []string{q.say("config.yaml has no mistakes.")}
		} else {
			state.Text = []string{q.say("Fix it: the running kernel keeps the old settings; a new one won't start.")}
		}
		blocks := []block{state}
		if hints := slices.Concat(status.GetLimits(), status.GetHints()); len(hints) > 0 {
			blocks = append(blocks, block{Title: q.say("Hints"), List: q.translated(hints)})
		}
		file := block{Title: filepath.Base(c.GetFile()), Lines: linesOf(c.GetText(), c.GetProblems())}
		switch {
		case c.GetFile() == "":
			file.Title = q.say("Settings")
			fallthrough
		case strings.TrimSpace(c.GetText()) == "":
			file.Text = []string{q.say("The file is empty: the defaults are in force. `switchboard config show` shows them.")}
			file.Lines = nil
		default:
			file.Text = []string{q.say("Edit %s with any editor; a running kernel follows when you save it. "+
				"`switchboard config show` shows the defaults too.", c.GetFile())}
		}
		return &sheet{Title: q.say("Configuration"), Blocks: append(blocks, file)}, nil
	})
}

var place = regexp.MustCompile(`(?:line |\.yaml:)(\d+)`)

// linesOf returns the lines of a file, with those marked that problems name.
func linesOf(text string, problems []string) (all []line) {
	wrong := map[int]bool{}
	for _, p := range problems {
		for _, found := range place.FindAllStringSubmatch(p, -1) {
			n, _ := strconv.Atoi(found[1])
			wrong[n] = true
		}
	}
	n := 0
	for l := range strings.Lines(text) {
		n++
		one := line{Number: n, Text: strings.TrimRight(l, "\r\n")}
		if wrong[n] {
			one.Class = "bad"
		}
		all = append(all, one)
	}
	return all
}
