from django.urls import path
from django.views.generic import RedirectView

from registry import views, views_servers, views_shown, views_tools, views_toolsets

app_name = "registry"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="registry:catalogue"), name="home"),
    path("catalogue/", views.catalogue, name="catalogue"),
    path("servers/", views.servers, name="servers"),
    path("servers/<slug:slug>/", views.server, name="server"),
    path("servers/<slug:slug>/items/", views.items, name="items"),
    path("servers/<slug:slug>/refresh/", views.refresh, name="refresh"),
    path("tools/<tool:name>/", views_tools.tool, name="tool"),
    path("tools/<tool:name>/versions/", views_tools.versions, name="tool_versions"),
    path("tools/<tool:name>/policy/", views_tools.policy, name="tool_policy"),
    path("tools/<tool:name>/publish/", views_tools.publish, name="publish"),
    path("tools/<tool:name>/tags/", views_tools.tag, name="tag_tool"),
    path("tools/<tool:name>/handling/", views_tools.set_handling, name="set_handling"),
    path("new/server/", views_servers.register, name="register"),
    path("servers/<slug:slug>/edit/", views_servers.edit, name="edit_server"),
    path("servers/<slug:slug>/enabled/", views_servers.set_enabled, name="set_server_enabled"),
    path("servers/<slug:slug>/relays/", views_servers.set_relays, name="set_server_relays"),
    path("servers/<slug:slug>/review/", views_servers.review, name="review"),
    path("toolsets/", views_toolsets.toolsets, name="toolsets"),
    path("new/toolset/", views_toolsets.add_toolset, name="add_toolset"),
    path("toolsets/<slug:slug>/", views_toolsets.toolset, name="toolset"),
    path("toolsets/<slug:slug>/connect/", views_toolsets.connect, name="connect"),
    path(
        "toolsets/<slug:slug>/own-tools/",
        views_toolsets.set_own_tools,
        name="set_toolset_own_tools",
    ),
    path("toolsets/<slug:slug>/title/", views_toolsets.set_title, name="set_toolset_title"),
    path("toolsets/<slug:slug>/servers/", views_toolsets.set_servers, name="set_toolset_servers"),
    path("toolsets/<slug:slug>/agents/", views_toolsets.set_agents, name="set_toolset_agents"),
    path("toolsets/<slug:slug>/tools/add/", views_toolsets.add_tools, name="add_tools"),
    path("toolsets/<slug:slug>/tools/remove/", views_toolsets.remove_tools, name="remove_tools"),
    path("toolsets/<slug:slug>/tools/<tool:name>/", views_shown.shown_tool, name="shown_tool"),
    path("agents/<slug:name>/toolsets/", views_toolsets.agent_toolsets, name="agent_toolsets"),
    path("agents/<slug:name>/connect/", views_toolsets.agent_connect, name="agent_connect"),
]
