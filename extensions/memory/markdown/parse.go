package markdown

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/memory/item"
)

// Entry is one memory of a document. What the document does not say is empty.
type Entry struct {
	item.Item
	Line int  // where it begins
	Done bool // an open item that is checked off
}

// Problems is what is wrong with a document, line by line.
type Problems []Problem

// Problem is what is wrong with a line.
type Problem struct {
	Line int
	Text string
}

// maxProblems is how many are told.
const maxProblems = 20

func (p Problems) Error() string {
	var lines []string
	for _, one := range p[:min(len(p), maxProblems)] {
		lines = append(lines, fmt.Sprintf("line %d: %s", one.Line, one.Text))
	}
	if left := len(p) - len(lines); left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(lines, "\n")
}

var (
	headingLine = regexp.MustCompile(`^(#{1,6})[ \t]+(.*?)[ \t]*#*$`)
	itemLine    = regexp.MustCompile(`^[-*+](?:[ \t]+(.*))?$`)
	checkbox    = regexp.MustCompile(`^\[([ xX])\](?:[ \t]+|$)`)
	fieldLine   = regexp.MustCompile(`^[-*+][ \t]+([A-Za-z_]+)[ \t]*:(?:[ \t]+(.*))?$`)
	scopeTitle  = regexp.MustCompile(`(?i)^scope[ \t]*:?[ \t]+(\S+)$`)
)

var kindTitles = map[string]item.Kind{
	"fact": item.Fact, "facts": item.Fact, "факты": item.Fact,
	"preference": item.Preference, "preferences": item.Preference, "предпочтения": item.Preference,
	"open": item.Open, "open item": item.Open, "open items": item.Open, "to do": item.Open, "todo": item.Open,
	"дела": item.Open, "открытые дела": item.Open, "открытые вопросы": item.Open,
}

// parser is a document on its way.
type parser struct {
	zone     *time.Location
	entries  []Entry
	problems Problems
	scope    string
	kind     item.Kind
	begun    bool // a section or an item has
	comment  bool // inside of <!-- -->

	item   *Entry
	text   []string
	fields map[string]bool
	empty  bool // an empty line was the last
}

// Parse reads a document. Local times are those of the zone; scope is that of
// items under no heading that names one. The error is Problems.
func Parse(text, scope string, zone *time.Location) ([]Entry, error) {
	p := &parser{zone: zone, scope: scope, kind: item.Fact}
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		p.line(n, line)
	}
	p.end()
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	return p.entries, nil
}

func (p *parser) wrong(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{line, fmt.Sprintf(format, args...)})
}

func (p *parser) line(n int, line string) {
	trimmed := strings.TrimSpace(line)
	indented := trimmed != "" && (strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t"))
	switch {
	case p.comment:
		p.comment = !strings.Contains(line, "-->")
	case trimmed == "":
		p.empty = true
		return
	case !indented && strings.HasPrefix(line, "<!--"):
		p.comment = !strings.Contains(line, "-->")
	case indented && p.item != nil:
		p.below(n, trimmed)
	case indented && p.begun:
		p.wrong(n, "this is indented, and belongs to no item above it")
	case !indented && headingLine.MatchString(line):
		p.end()
		m := headingLine.FindStringSubmatch(line)
		p.heading(n, len(m[1]), m[2])
	case !indented && itemLine.MatchString(line):
		p.end()
		p.begin(n, itemLine.FindStringSubmatch(line)[1])
	case p.item != nil:
		p.wrong(n, "%s belongs to nothing: a text that goes on is indented by two spaces, a new item begins with “- ”", quoted(trimmed))
	case p.begun:
		p.wrong(n, "%s is neither a heading nor an item: an item begins with “- ”", quoted(trimmed))
	}
	p.empty = false
}

func (p *parser) heading(n, level int, title string) {
	begun := p.begun
	p.begun = true
	if m := scopeTitle.FindStringSubmatch(title); m != nil {
		if err := item.CheckScope(m[1]); err != nil {
			p.wrong(n, "%v", err)
		}
		p.scope, p.kind = m[1], item.Fact
		return
	}
	kind, ok := kindTitles[strings.ToLower(title)]
	switch {
	case ok:
		p.kind = kind
	case level == 1 && !begun:
		p.begun = false // the title, and perhaps words below it
	default:
		p.wrong(n, "%s is no heading of this document: there are Preferences, Open items, Facts, and Scope: NAME", quoted(title))
	}
}

func (p *parser) begin(n int, text string) {
	p.begun = true
	p.item, p.text, p.fields = &Entry{Line: n}, nil, map[string]bool{}
	p.item.Scope, p.item.Kind = p.scope, p.kind
	if m := checkbox.FindStringSubmatch(text); m != nil {
		p.item.Kind, p.item.Done = item.Open, m[1] != " "
		text = text[len(m[0]):]
	}
	p.text = append(p.text, unescape(strings.TrimSpace(text)))
}

// below reads what is indented under an item.
func (p *parser) below(n int, text string) {
	if m := fieldLine.FindStringSubmatch(text); m != nil {
		p.field(n, strings.ToLower(m[1]), strings.TrimSpace(m[2]))
		return
	}
	switch {
	case itemLine.MatchString(text):
		p.wrong(n, "%s is none of due, channel, by, id, created and updated: to have it in the text, write “\\-”", quoted(text))
	case len(p.fields) > 0:
		p.wrong(n, "%s stands below the fields: the text stands above them", quoted(text))
	default:
		if p.empty {
			p.text = append(p.text, "")
		}
		p.text = append(p.text, unescape(text))
	}
}

func (p *parser) field(n int, name, value string) {
	if p.fields[name] {
		p.wrong(n, "%s stands here twice", name)
		return
	}
	p.fields[name] = true
	var err error
	switch name {
	case "id":
		p.item.ID = value
	case "channel", "channel_id":
		p.item.ChannelID = value
	case "by":
		p.item.By = value
	case "due":
		p.item.Due, err = item.ParseDue(value, p.zone)
	case "created":
		p.item.Created, err = p.moment(value)
	case "updated":
		p.item.Updated, err = p.moment(value)
	default:
		err = fmt.Errorf("%s is none of due, channel, by, id, created and updated: to have it in the text, write “\\-”", quoted(name))
	}
	if err != nil {
		p.wrong(n, "%v", err)
	}
}

// moment reads a time; a date alone is its noon.
func (p *parser) moment(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, p.zone); err == nil && at.UTC().Year() >= 1 && at.UTC().Year() <= 9999 {
			return at.Truncate(time.Second), nil
		}
	}
	if at, err := time.ParseInLocation("2006-01-02", text, p.zone); err == nil && at.Year() >= 1 {
		return at.Add(12 * time.Hour), nil
	}
	return time.Time{}, fmt.Errorf("%s is no time: write a date such as 2026-03-01, or 2026-03-01T18:30", quoted(text))
}

// end finishes the item that was being read.
func (p *parser) end() {
	if p.item == nil {
		return
	}
	e := *p.item
	p.item = nil
	e.Text = item.Clean(strings.Join(p.text, "\n"))
	e.ID = strings.ToLower(e.ID)
	check := e.Item
	if check.ID == "" {
		check.ID = "m"
	}
	if check.Created.IsZero() {
		check.Created = time.Unix(0, 0)
	}
	if check.Updated.IsZero() {
		check.Updated = check.Created
	}
	if err := check.Check(); err != nil {
		p.wrong(e.Line, "%v", err)
		return
	}
	p.entries = append(p.entries, e)
}

func quoted(s string) string {
	if r := []rune(s); len(r) > 40 {
		s = string(r[:39]) + "…"
	}
	return "“" + s + "”"
}
