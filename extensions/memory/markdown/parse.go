package markdown

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
)

// Entry is one memory of a document. Fields that the document does not give are
// empty.
type Entry struct {
	item.Item
	Line      int  // its first line
	Done      bool // an open item that is checked off
	Household bool // it states that it belongs to the household
}

// Problems are the invalid lines of a document.
type Problems []Problem

// Problem is an invalid line.
type Problem struct {
	Line int
	Text string
}

// maxProblems is the most problems in an error text.
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

// Most processes never need these.
var (
	headingLine = lazy(`^(#{1,6})[ \t]+(.*?)[ \t]*#*$`)
	itemLine    = lazy(`^[-*+](?:[ \t]+(.*))?$`)
	checkbox    = lazy(`^\[([ xX])\](?:[ \t]+|$)`)
	fieldLine   = lazy(`^[-*+][ \t]+([A-Za-z_]+)[ \t]*:(?:[ \t]+(.*))?$`)
	scopeTitle  = lazy(`(?i)^scope[ \t]*:?[ \t]+(\S+)$`)
)

// lazy returns a regular expression that is compiled when it is first needed.
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

var kindTitles = map[string]item.Kind{
	"fact": item.Fact, "facts": item.Fact, "факты": item.Fact,
	"preference": item.Preference, "preferences": item.Preference, "предпочтения": item.Preference,
	"open": item.Open, "open item": item.Open, "open items": item.Open, "to do": item.Open, "todo": item.Open,
	"дела": item.Open, "открытые дела": item.Open, "открытые вопросы": item.Open,
}

// parser is the state of parsing a document.
type parser struct {
	zone     *time.Location
	entries  []Entry
	problems Problems
	scope    string
	kind     item.Kind
	begun    bool // there was a section or an item
	comment  bool // inside <!-- -->

	item   *Entry
	text   []string
	fields map[string]bool
	empty  bool // the last line was empty
}

// Parse parses a document. zone is the zone of local times; scope is the scope of
// items without a scope heading. An error has type Problems.
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

func (p *parser) problem(line int, format string, args ...any) {
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
		p.problem(n, "indented line without an item above it")
	case !indented && headingLine().MatchString(line):
		p.end()
		m := headingLine().FindStringSubmatch(line)
		p.heading(n, len(m[1]), m[2])
	case !indented && itemLine().MatchString(line):
		p.end()
		p.begin(n, itemLine().FindStringSubmatch(line)[1])
	case p.item != nil:
		p.problem(n, "unexpected %s: indent a continued text by two spaces, or begin a new item with “- ”",
			quoted(trimmed))
	case p.begun:
		p.problem(n, "unexpected %s: begin an item with “- ”", quoted(trimmed))
	}
	p.empty = false
}

func (p *parser) heading(n, level int, title string) {
	begun := p.begun
	p.begun = true
	if m := scopeTitle().FindStringSubmatch(title); m != nil {
		if err := item.CheckScope(m[1]); err != nil {
			p.problem(n, "%v", err)
		}
		p.scope, p.kind = m[1], item.Fact
		return
	}
	kind, ok := kindTitles[strings.ToLower(title)]
	switch {
	case ok:
		p.kind = kind
	case level == 1 && !begun:
		p.begun = false // the title of the document; a text may follow
	default:
		p.problem(n, "unknown heading %s: use Preferences, Open items, Facts, or Scope: NAME", quoted(title))
	}
}

func (p *parser) begin(n int, text string) {
	p.begun = true
	p.item, p.text, p.fields = &Entry{Line: n}, nil, map[string]bool{}
	p.item.Scope, p.item.Kind = p.scope, p.kind
	if m := checkbox().FindStringSubmatch(text); m != nil {
		p.item.Kind, p.item.Done = item.Open, m[1] != " "
		text = text[len(m[0]):]
	}
	p.text = append(p.text, unescape(strings.TrimSpace(text)))
}

// below reads an indented line under an item.
func (p *parser) below(n int, text string) {
	if m := fieldLine().FindStringSubmatch(text); m != nil {
		p.field(n, strings.ToLower(m[1]), strings.TrimSpace(m[2]))
		return
	}
	switch {
	case itemLine().MatchString(text):
		p.problem(n, unknownField, quoted(text))
	case len(p.fields) > 0:
		p.problem(n, "unexpected %s after the fields: put the text above them", quoted(text))
	default:
		if p.empty {
			p.text = append(p.text, "")
		}
		p.text = append(p.text, unescape(text))
	}
}

const unknownField = "unknown field %s: use due, channel, file, by, group, owner, id, created or " +
	"updated, or write “\\-” for text"

func (p *parser) field(n int, name, value string) {
	if p.fields[name] && name != "file" {
		p.problem(n, "duplicate field %s", name)
		return
	}
	p.fields[name] = true
	var err error
	switch name {
	case "id":
		p.item.ID = value
	case "channel", "channel_id":
		p.item.ChannelID = value
	case "file":
		err = p.file(value)
	case "by":
		p.item.By = value
	case "group":
		p.item.Principal.Group, p.item.Principal.Confined = value, value != ""
	case "owner":
		err = p.owner(value)
	case "due":
		p.item.Due, err = item.ParseDue(value, p.zone)
	case "created":
		p.item.Created, err = p.moment(value)
	case "updated":
		p.item.Updated, err = p.moment(value)
	default:
		err = fmt.Errorf(unknownField, quoted(name))
	}
	if err != nil {
		p.problem(n, "%v", err)
	}
}

// owner sets whose own the item is.
func (p *parser) owner(value string) error {
	switch {
	case len(strings.Fields(value)) > 1 || len(value) > maxOwner:
		return fmt.Errorf("invalid owner %s: use %s, or the id of an account as in an export", quoted(value), household)
	case value == household:
		p.item.Household = true
	case value != "":
		p.item.Principal.Person, p.item.Principal.Own = value, true
	}
	return nil
}

// maxOwner is the most bytes of an account's id.
const maxOwner = 200

// file adds a file to the item.
func (p *parser) file(reference string) error {
	a, err := contract.ParseReference(reference)
	switch {
	case err != nil:
		return err
	case len(a.Blob) != 2*sha256.Size:
		return fmt.Errorf("file %s: write its whole hash, as an export does", quoted(reference))
	case slices.ContainsFunc(p.item.Attachments, func(b contract.Attachment) bool { return a.Blob == b.Blob }):
		return nil
	}
	p.item.Attachments = append(p.item.Attachments, a)
	return nil
}

// moment parses a time. A date without a time means noon.
func (p *parser) moment(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04",
		"2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, p.zone); err == nil && at.UTC().Year() >= 1 &&
			at.UTC().Year() <= 9999 {
			return at.Truncate(time.Second), nil
		}
	}
	if at, err := time.ParseInLocation("2006-01-02", text, p.zone); err == nil && at.Year() >= 1 {
		return at.Add(12 * time.Hour), nil
	}
	return time.Time{}, fmt.Errorf("parse time %s: use a date such as 2026-03-01, or 2026-03-01T18:30", quoted(text))
}

// end finishes the current item.
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
		p.problem(e.Line, "%v", err)
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
