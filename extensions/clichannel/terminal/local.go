package terminal

import (
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk/picture"
)

// localCommands are the commands that the terminal itself runs.
var localCommands = []string{"attach", "detach", "save"}

// parseLocal returns the local command of a line; empty: it is none.
func parseLocal(line string) (command, arguments string) {
	name, rest, _ := strings.Cut(line, " ")
	name, isCommand := strings.CutPrefix(name, "/")
	if isCommand && slices.Contains(localCommands, name) {
		return name, strings.TrimSpace(rest)
	}
	return "", ""
}

// local runs a line that is for the terminal itself, and reports whether it was one.
func (c *chatView) local(line string) bool {
	command, arguments := parseLocal(line)
	switch command {
	case "attach":
		if arguments == "" {
			c.note(c.say("Usage: /attach PATH attaches files to your next message; /detach removes them."))
			return true
		}
		c.attach(arguments)
	case "detach":
		c.detach()
	case "save":
		c.save(arguments)
	default:
		if strings.HasPrefix(line, "/") && c.isCommand(line) || len(dropped(line)) == 0 {
			return false
		}
		c.attach(line)
	}
	return true
}

// isCommand reports whether a line is a command of the kernel.
func (c *chatView) isCommand(line string) bool {
	name, _, _ := strings.Cut(line[1:], " ")
	commands := c.editor.commands.Load()
	return commands != nil && slices.Contains(*commands, name)
}

// attach adds files to the next message. What is sent, and when, is for the person to see.
func (c *chatView) attach(arguments string) {
	c.mu.Lock()
	problems := c.next.add(arguments, c.options.MaxFile)
	c.mu.Unlock()
	var lines []string
	for _, err := range problems {
		lines = append(lines, c.theme.failure(words.Translate(c.options.Language, err.Error())))
	}
	c.screen.print(lines...)
	c.status() // names what is attached
}

func (c *chatView) detach() {
	c.mu.Lock()
	none := len(c.next) == 0
	c.next.drop()
	c.mu.Unlock()
	if none {
		c.note(c.say("Nothing is attached."))
	} else {
		c.note(c.say("The next message has no files now."))
	}
	c.status()
}

// submitWithFiles sends a message with the attached files. A command takes none.
func (c *chatView) submitWithFiles(text string) {
	if strings.HasPrefix(text, "/") {
		c.submit(text)
		return
	}
	c.mu.Lock()
	files := c.next.take()
	c.mu.Unlock()
	if len(files) > 0 {
		c.note("+ " + attached(files).describe())
	}
	c.submit(text, files...)
}

func (c *chatView) note(text string) { c.screen.print(c.theme.faint("  " + text)) }

// save asks for a file and saves it when it arrives.
func (c *chatView) save(arguments string) {
	s, err := parseSave(arguments)
	if err != nil {
		c.warn(words.Translate(c.options.Language, err.Error()))
		return
	}
	c.link.fetch(s.reference, &saving{save: s, done: func(path string, size int64, err error) {
		if err != nil {
			c.warn(c.say("not saved: %s", words.Translate(c.options.Language, err.Error())))
			return
		}
		c.note(c.say("saved: %s", path) + ", " + sizeText(size))
	}})
}

// showImages shows images below their message, where the terminal can.
func (c *chatView) showImages(files []contract.Attachment) {
	if c.graphics == noGraphics {
		return
	}
	for _, a := range imagesOf(files) {
		c.link.fetch(a.Blob, &showing{show: func(p picture.Picture) {
			_, height := c.screen.size()
			shown, err := c.graphics.encode(p, max(3, height/2), rowHeight(c.editor.outFD))
			if err == nil {
				c.screen.print("  "+shown, "")
			}
		}})
	}
}
