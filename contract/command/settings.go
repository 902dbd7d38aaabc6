package command

import (
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/quiet"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/contract/zone"
)

// Timezone reads the arguments of /timezone for a person who has set current, or nothing,
// and so lives in a zone. It returns the zone to set, which is current if nothing changes,
// and the answer.
func Timezone(language, rest, current string, in *time.Location, now time.Time) (set, answer string) {
	clock := func(in *time.Location) string { return now.In(in).Format("15:04") }
	if rest == "" {
		return current, words.Say(language, "Your time zone is %s: it's %s there. To change it: /timezone Europe/Berlin",
			in, clock(in))
	}
	loc, err := zone.Find(rest)
	if err == nil {
		return loc.String(), words.Say(language, "Your time zone is %s now: it's %s there.", loc, clock(loc))
	}
	if similar := zone.Similar(rest); len(similar) > 0 {
		return current, words.Say(language, "There is no time zone %s. To choose one:\n\n%s", rest,
			"/timezone "+strings.Join(similar, "\n/timezone "))
	}
	return current, words.Say(language, "I don't know that time zone. Name it by a continent and a large city, such as "+
		"/timezone Europe/Berlin. Then I also know when its clocks change.")
}

// Quiet reads the arguments of /quiet for a person with these quiet hours. It returns the
// hours to set, which are the current ones if nothing changes, and the answer.
func Quiet(language, rest, current string, in *time.Location) (set, answer string) {
	hours, ok := quiet.Parse(rest)
	switch {
	case rest == "" && current == "":
		answer = words.Say(language, "You have no quiet hours. To get only what you ask for at night: /quiet 22:00-07:00")
	case rest == "":
		answer = words.Say(language, "Your quiet hours are %s (%s). To end them: /quiet off", current, in)
	case strings.EqualFold(rest, "off"):
		return "", words.Say(language, "You have no quiet hours now.")
	case !ok:
		answer = words.Say(language, "I don't understand these hours. Usage: /quiet 22:00-07:00, or /quiet off")
	default:
		return hours.String(), words.Say(language, "Your quiet hours are %s (%s) now. In them I send you only what you "+
			"ask for, and the rest afterwards. To end them: /quiet off", hours, in)
	}
	return current, answer
}
