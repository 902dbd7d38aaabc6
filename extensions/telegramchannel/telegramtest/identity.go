package telegramtest

// Token returns the token of the bot that gets the updates.
func (s *Server) Token() string {
	s.botMu.RLock()
	defer s.botMu.RUnlock()
	for token, b := range s.bots {
		if b == s.bot {
			return token
		}
	}
	return ""
}

// Bot returns the bot's user.
func (s *Server) Bot() User { return s.current().user }

// Revoke gives the bot a new token, as BotFather does. The old one becomes unknown;
// the bot, its chats and its updates stay.
func (s *Server) Revoke(newToken string) {
	s.botMu.Lock()
	defer s.botMu.Unlock()
	for token, b := range s.bots {
		if b == s.bot {
			delete(s.bots, token)
		}
	}
	s.bots[newToken] = s.bot
}

// SwitchBot sends further updates to another bot, with its own update ids and queue.
// The former bot's token keeps working.
func (s *Server) SwitchBot(token, username string) {
	s.botMu.Lock()
	defer s.botMu.Unlock()
	if s.bots[token] == nil {
		s.bots[token] = newBot(token, username)
	}
	s.bot = s.bots[token]
}

// Webhook sets a webhook, as another program that uses the same token might; "" removes it.
func (s *Server) Webhook(url string) { _, _ = s.current().setWebhook(url) }

// Commands returns the command menu that people with a language see, such as ru; "" is
// that of all who have none of their own.
func (s *Server) Commands(language string) []Command { return s.current().myCommands(language) }

// PendingUpdates returns the ids of the updates that the bot has not confirmed, ascending.
func (s *Server) PendingUpdates() []int64 { return s.current().pending() }

// Confirmed returns the highest offset that the bot requested.
func (s *Server) Confirmed() int64 {
	b := s.current()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.confirmed
}
