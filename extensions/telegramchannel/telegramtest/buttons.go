package telegramtest

import (
	"net/http"
	"slices"
	"strconv"
)

// Button is a button below a message.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

// Press is a press of a button, which the bot has to answer.
type Press struct {
	Update   int64
	Query    string
	Answered bool
	Text     string // what the bot shows the person
}

// keyboard returns the buttons of a call; present: it names them.
func keyboard(p params) (rows [][]Button, refusal *apiError) {
	if p["reply_markup"] == "" {
		return nil, nil
	}
	var markup struct {
		Rows *[][]Button `json:"inline_keyboard"`
	}
	if err := p.json("reply_markup", &markup); err != nil || markup.Rows == nil {
		return nil, badRequest("object expected as reply markup")
	}
	for _, row := range *markup.Rows {
		if len(row) > 8 {
			return nil, badRequest("BUTTON_ROW_TOO_LONG")
		}
		for _, b := range row {
			switch {
			case b.Text == "":
				return nil, badRequest("text buttons are unallowed in the inline keyboard")
			case len(b.Data) < 1 || len(b.Data) > 64:
				return nil, badRequest("BUTTON_DATA_INVALID")
			}
		}
	}
	return *markup.Rows, nil
}

func (s *Server) editMessageReplyMarkup(b *bot, p params) (any, *apiError) {
	c, refusal := s.target(p)
	if refusal != nil {
		return nil, refusal
	}
	rows, refusal := keyboard(p)
	if refusal != nil {
		return nil, refusal
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.find(int(p.int("message_id")))
	switch {
	case i < 0:
		return nil, badRequest("message to edit not found")
	case c.messages[i].From != b.user.ID:
		return nil, badRequest("message can't be edited")
	case len(rows) == 0 && len(c.messages[i].Buttons) == 0:
		return nil, badRequest("message is not modified: specified new message content and reply markup " +
			"are exactly the same as a current content and reply markup of the message")
	}
	if refusal := s.admit(c); refusal != nil {
		return nil, refusal
	}
	c.messages[i].Buttons = rows
	c.tell()
	return s.wire(c, c.messages[i], b.user), nil
}

func (s *Server) answerCallbackQuery(p params) (any, *apiError) {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	i := slices.IndexFunc(s.book.presses, func(x Press) bool { return x.Query == p["callback_query_id"] })
	if i < 0 || s.book.presses[i].Answered {
		return nil, &apiError{code: http.StatusBadRequest, description: "Bad Request: query is too old and response " +
			"timeout expired or query ID is invalid"}
	}
	s.book.presses[i].Answered, s.book.presses[i].Text = true, p["text"]
	return true, nil
}

// Press presses the button with a label below a message of the bot, if it is there. The
// button stays as long as the bot doesn't remove it.
func (s *Server) Press(chat int64, message int, label string, by User) (press Press, found bool) {
	if by.FirstName == "" {
		by.FirstName = "User"
	}
	c := s.lookup(chat)
	c.mu.Lock()
	var data string
	var content map[string]any
	if i := c.find(message); i >= 0 {
		for _, row := range c.messages[i].Buttons {
			for _, b := range row {
				if b.Text == label {
					data, found = b.Data, true
				}
			}
		}
		content = s.wire(c, c.messages[i], s.writer(c.messages[i].From))
	}
	c.mu.Unlock()
	if !found {
		return Press{}, false
	}
	return s.PressData(content, data, by), true
}

// PressData is a press of a button with any data, below a message as Telegram encodes it.
func (s *Server) PressData(message map[string]any, data string, by User) Press {
	s.book.mu.Lock()
	press := Press{Query: "query" + strconv.Itoa(len(s.book.presses)+1)}
	s.book.presses = append(s.book.presses, press)
	s.book.mu.Unlock()
	press.Update = s.current().add("callback_query", map[string]any{
		"id": press.Query, "from": by, "message": message, "chat_instance": "1", "data": data,
	})
	return press
}

// Presses returns the presses of buttons, in order.
func (s *Server) Presses() []Press {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return slices.Clone(s.book.presses)
}

// React puts an emoji of a person on a message; empty: they take it off.
func (s *Server) React(chat int64, message int, emoji string, by User) int64 {
	if by.FirstName == "" {
		by.FirstName = "User"
	}
	reaction := []any{}
	if emoji != "" {
		reaction = append(reaction, map[string]any{"type": "emoji", "emoji": emoji})
	}
	return s.current().add("message_reaction", map[string]any{
		"chat": s.lookup(chat).info, "message_id": message, "user": by, "date": s.now().Unix(),
		"old_reaction": []any{}, "new_reaction": reaction,
	})
}
