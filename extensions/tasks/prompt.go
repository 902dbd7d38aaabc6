package tasks

import "strings"

// prompts keeps the newest prompts of tasks that have not finished, by id, which
// saves reading them.
type prompts struct {
	texts map[string]string
	size  int
}

// maxPrompts is how much text is kept.
const maxPrompts = 1 << 20

func (t *tasks) keepPrompt(id, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.prompts.size+len(text) > maxPrompts {
		t.prompts = prompts{texts: map[string]string{}}
	}
	t.prompts.texts[id] = text
	t.prompts.size += len(text)
}

func (t *tasks) forgetPrompt(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompts.size -= len(t.prompts.texts[id])
	delete(t.prompts.texts, id)
}

// prompt is what a task is to do.
func (c *change) prompt(id string) (string, error) {
	c.mu.Lock()
	text, kept := c.prompts.texts[id]
	c.mu.Unlock()
	if kept {
		return text, nil
	}
	stored, err := readOrNew[string](c, promptPrefix+id)
	if err != nil {
		return "", err
	}
	return *stored, nil
}

// maxBeginning is how many letters of a prompt are listed.
const maxBeginning = 60

// beginning is the first line of a prompt, shortened.
func beginning(prompt string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	letters := []rune(strings.Join(strings.Fields(line), " "))
	switch {
	case len(letters) > maxBeginning:
		return string(letters[:maxBeginning-1]) + "…"
	case more != "":
		return string(letters) + " …"
	}
	return string(letters)
}
