package router

// Parts are the texts that are sent to a channel with a limit.
func Parts(text string, limit int) []string { return Split(text, roomBesideMark(limit)) }
