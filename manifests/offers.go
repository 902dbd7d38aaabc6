package manifests

import (
	"maps"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/words"
)

// AskOffer is the kind of an Ask to give agents one tool, as the extension describes it.
// Who allowed AskTools allowed the tools that the extension describes first; others, and
// those with a changed description, are asked for by name.
const AskOffer = "offer"

// maxShown is how many characters of a tool's description the owner sees.
const maxShown = 300

// offer is the Value of an AskOffer.
type offer struct {
	name  string
	reach string // a letter for each limit that the tool does not have
	sum   string // of its description and its schema
	text  string // of the description, for people
}

// Offer returns what an extension asks for with a tool. The sum is a hash of the tool's
// description and schema.
func Offer(t *extensionv1.Tool, sum string) Ask {
	var reach strings.Builder
	for _, free := range []struct {
		letter string
		is     bool
	}{
		{"u", !t.GetApprove()}, {"p", !t.GetPrivate()}, {"r", t.GetReadOnly()}, {"i", t.GetIdempotent()},
		{"f", t.GetFinal()}, {"w", t.GetWaits()},
	} {
		if free.is {
			reach.WriteString(free.letter)
		}
	}
	text := strings.Join(strings.Fields(strings.Map(words.Printable, t.GetDescription())), " ")
	if all := []rune(text); len(all) > maxShown {
		text = string(all[:maxShown]) + " ..."
	}
	return Ask{AskOffer, strings.Join([]string{t.GetName(), reach.String(), sum, text}, " ")}
}

func (a Ask) offer() (o offer) {
	parts := append(strings.SplitN(a.Value, " ", 4), "", "", "", "")
	return offer{parts[0], parts[1], parts[2], parts[3]}
}

// covers reports whether the other is the same tool with the same limits or more.
func (o offer) covers(other offer) bool {
	return o.name == other.name && o.sum == other.sum && strings.Trim(other.reach, o.reach) == ""
}

// Offers returns the tools among what is asked for.
func (r Request) Offers() (tools Request) {
	for _, a := range r {
		if a.Kind == AskOffer {
			tools = append(tools, a)
		}
	}
	return tools
}

// byName returns the tools that are asked for by name.
func (r Request) byName() map[string]offer {
	all := map[string]offer{}
	for _, a := range r.Offers() {
		o := a.offer()
		all[o.name] = o
	}
	return all
}

// Names returns the names of the tools that are asked for by name.
func (r Request) Names() []string { return slices.Sorted(maps.Keys(r.byName())) }

// With returns r with more. A tool in it replaces the one of the same name in r.
func (r Request) With(more Request) Request {
	all, tools := slices.Clone(more), more.byName()
	for _, a := range r {
		if _, replaced := tools[a.offer().name]; a.Kind != AskOffer || !replaced {
			all = append(all, a)
		}
	}
	return all.sorted()
}

// LinesOf are the lines of what is asked for beyond r. Of a changed tool they show what it
// was in r.
func (r Request) LinesOf(more Request, language string) (lines []string) {
	say := func(text string, args ...any) { lines = append(lines, words.Say(language, text, args...)) }
	var rest Request
	before := r.byName()
	for _, a := range more {
		if a.Kind != AskOffer {
			rest = append(rest, a)
			continue
		}
		is := a.offer()
		was, known := before[is.name]
		switch {
		case !known:
			lines = append(lines, a.line(language))
			continue
		case was.text != is.text:
			say("give agents the changed tool %s: %s (before: %s)", is.name, is.text, was.text)
		case was.sum != is.sum:
			say("give agents the tool %s, which takes other arguments now: %s", is.name, is.text)
		}
		switch asks := strings.Contains(was.reach, "u") || !strings.Contains(is.reach, "u"); {
		case !asks:
			say("let agents use the tool %s without asking you each time: %s", is.name, is.text)
		case strings.Trim(is.reach, was.reach) != "":
			say("let agents use the tool %s with fewer limits: %s", is.name, is.text)
		}
	}
	return append(rest.Lines(language), lines...)
}
