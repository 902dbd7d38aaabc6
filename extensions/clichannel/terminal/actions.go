package terminal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// offer is the actions of the newest message: to type the number of one is to type its
// command. Whatever is shown or said next ends it, because a number may then mean
// something else.
type offer []contract.Action

// pressed returns the action that a line names by its number.
func (o offer) pressed(line string) (a contract.Action, ok bool) {
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || n < 1 || n > len(o) {
		return a, false
	}
	return o[n-1], true
}

// actions lists the actions of a message with their numbers, unless the text does.
func (t theme) actions(f wire.Frame, width int) (lines []string) {
	line, used := "", 0
	for i, a := range f.Actions {
		label := strings.Join(strings.Fields(markdown.Clean(a.Label)), " ")
		if strings.Contains(f.Text, fmt.Sprintf("\n%d. %s", i+1, a.Label)) {
			continue
		}
		number := strconv.Itoa(i + 1)
		item := t.paint("1;36", number) + " " + label
		w := markdown.Width(number + " " + label)
		switch {
		case line == "":
		case used+3+w > width:
			lines = append(lines, line)
			line, used = "", 0
		default:
			line, used = line+"   ", used+3
		}
		line, used = line+item, used+w
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// setOffer replaces the offer; c.mu is held.
func (c *chatView) setOffer(o offer) {
	if len(o)+len(c.offer) > 0 {
		c.offer = o
		c.offers++
	}
}

// lineBegun notes what is on the screen when the person begins to type. It must run before
// the screen shows the first key: a message that comes after the key is new to the person.
func (c *chatView) lineBegun() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.offers
}

// press handles a line that is the number of an action, and reports whether it was one.
// One that came while the person was typing is not pressed.
func (c *chatView) press(line string) bool {
	c.mu.Lock()
	a, ok := c.offer.pressed(line)
	stale := c.seen != c.offers
	c.mu.Unlock()
	switch {
	case !ok:
		return false
	case stale:
		c.note(c.say("A new message came while you were typing. Type the number again if you mean it."))
	default:
		c.note(a.Label)
		c.submit(a.Command)
	}
	return true
}
